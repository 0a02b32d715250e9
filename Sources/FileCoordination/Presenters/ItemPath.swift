import FoundationEssentials
import SystemCalls

/// An absolute path without symbolic links, "." and "..", byte for byte: two that Swift's strings
/// call equal ("é" composed and decomposed) are different files.
struct ItemPath: Hashable, Sendable {
  let bytes: [UInt8]

  init(_ text: String) {
    bytes = Array(text.utf8)
  }

  private init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// The path as text; repaired where it is not valid UTF-8, and then it names nothing.
  var text: String { String(decoding: bytes, as: UTF8.self) }

  var url: URL { URL(filePath: text, directoryHint: .inferFromPath) }

  private static let slash = UInt8(ascii: "/")

  /// The directory that the item is in; the root is in itself.
  var parent: ItemPath {
    let end = bytes.lastIndex(of: Self.slash) ?? 0
    return end == 0 ? ItemPath("/") : ItemPath(bytes: Array(bytes[..<end]))
  }

  /// All directories above, the nearest first and the root last.
  var ancestors: [ItemPath] {
    var all: [ItemPath] = []
    var path = self
    while path.bytes.count > 1 {
      path = path.parent
      all.append(path)
    }
    return all
  }

  var name: FileName {
    let start = bytes.lastIndex(of: Self.slash).map { $0 + 1 } ?? 0
    return FileName(bytes: Array(bytes[start...]))
  }

  func appending(_ name: FileName) -> ItemPath {
    ItemPath(bytes: (bytes.count == 1 ? [] : bytes) + [Self.slash] + name.bytes)
  }

  /// Whether the other lies in this directory, at any depth.
  func contains(_ other: ItemPath) -> Bool {
    if bytes.count == 1 { return other.bytes.count > 1 }
    return other.bytes.count > bytes.count && other.bytes[bytes.count] == Self.slash
      && other.bytes.starts(with: bytes)
  }

  /// The names on the way from this directory to the other; nil when it does not lie in it.
  func components(to other: ItemPath) -> [FileName]? {
    guard contains(other) else { return nil }
    return other.bytes[bytes.count...].split(separator: Self.slash).map {
      FileName(bytes: Array($0))
    }
  }

  /// Where this is after `old`, which is it or contains it, was moved; nil when it is elsewhere.
  func moved(from old: ItemPath, to new: ItemPath) -> ItemPath? {
    if self == old { return new }
    guard old.contains(self) else { return nil }
    let rest = old.bytes.count == 1 ? bytes[...] : bytes[old.bytes.count...]
    return ItemPath(bytes: (new.bytes.count == 1 ? [] : new.bytes) + rest)
  }
}

extension ItemPath {
  private static let mostLinks = 40

  /// The place that a path means, as the kernel has it. What is missing yet is taken as written.
  ///
  /// - Parameter followingLink: whether an item that is a symbolic link means what it points to.
  /// - Throws: `Errno` where a directory on the way may not be looked at; `.tooManyLinks`.
  static func canonical(_ written: String, followingLink: Bool) throws(Errno) -> ItemPath {
    var written = written
    for _ in 0..<mostLinks {
      let path = try withoutLinksAbove(written)
      guard followingLink, let target = try path.linkTarget() else { return path }
      written = target.hasPrefix("/") ? target : path.parent.text + "/" + target
    }
    throw .tooManyLinks
  }

  private static func withoutLinksAbove(_ written: String) throws(Errno) -> ItemPath {
    var written = written
    while written.utf8.count > 1, written.utf8.last == slash { written.removeLast() }
    if written.utf8.first != slash {
      written = try SystemCalls.linkTarget("/proc/self/cwd") + "/" + written
    }
    let path = ItemPath(written)
    guard path.bytes.count > 1 else { return path }
    var missing = [path.name]
    var directory = path.parent
    while true {
      do throws(Errno) {
        let open = try FileDescriptor.open(directory.text, [.pathOnly, .directory])
        let place = try SystemCalls.linkTarget("/proc/self/fd/\(open.rawValue)")
        return missing.reversed().reduce(ItemPath(place)) { $0.resolving($1) }
      } catch {
        guard error == .noSuchFile || error == .notDirectory, directory.bytes.count > 1 else {
          throw error
        }
        missing.append(directory.name)
        directory = directory.parent
      }
    }
  }

  private func linkTarget() throws(Errno) -> String? {
    do throws(Errno) {
      return try SystemCalls.linkTarget(text)
    } catch {
      // Not a link, or nothing at all (readlink(2)).
      guard [.invalidArgument, .noSuchFile, .notDirectory].contains(error) else { throw error }
      return nil
    }
  }

  private func resolving(_ name: FileName) -> ItemPath {
    switch name.text {
    case "", ".": self
    case "..": parent
    default: appending(name)
    }
  }
}
