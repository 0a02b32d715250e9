package import SystemCalls

/// Where an item is: an absolute path without symbolic links, "." and "..", so two processes that mean
/// the same file by different paths find the same one. It is compared byte for byte: two that Swift's
/// strings call equal ("é" composed and decomposed) are different files.
package struct ItemPath: Hashable, Sendable {
  package let bytes: [UInt8]

  package init(_ text: String) {
    bytes = Array(text.utf8)
  }

  private init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// The path as text; repaired where it is not valid UTF-8, and then it names nothing.
  package var text: String { String(decoding: bytes, as: UTF8.self) }

  static let slash = UInt8(ascii: "/")
  static let dot = UInt8(ascii: ".")

  /// The directory that the item is in; the root is in itself.
  package var parent: ItemPath {
    let end = bytes.lastIndex(of: Self.slash) ?? 0
    return end == 0 ? ItemPath("/") : ItemPath(bytes: Array(bytes[..<end]))
  }

  /// All directories above, the nearest first and the root last.
  package var ancestors: [ItemPath] {
    var all: [ItemPath] = []
    var path = self
    while path.bytes.count > 1 {
      path = path.parent
      all.append(path)
    }
    return all
  }

  package var name: FileName {
    let start = bytes.lastIndex(of: Self.slash).map { $0 + 1 } ?? 0
    return FileName(bytes: Array(bytes[start...]))
  }

  package func appending(_ name: FileName) -> ItemPath {
    ItemPath(bytes: (bytes.count == 1 ? [] : bytes) + [Self.slash] + name.bytes)
  }

  /// Whether the other lies in this directory, at any depth.
  package func contains(_ other: ItemPath) -> Bool {
    if bytes.count == 1 { return other.bytes.count > 1 }
    return other.bytes.count > bytes.count && other.bytes[bytes.count] == Self.slash
      && other.bytes.starts(with: bytes)
  }

  /// The names on the way from this directory to the other; nil when it does not lie in it.
  package func components(to other: ItemPath) -> [FileName]? {
    guard contains(other) else { return nil }
    return other.bytes[bytes.count...].split(separator: Self.slash).map {
      FileName(bytes: Array($0))
    }
  }

  /// Where this is after `old`, which is it or contains it, was moved; nil when it is elsewhere.
  package func moved(from old: ItemPath, to new: ItemPath) -> ItemPath? {
    if self == old { return new }
    guard old.contains(self) else { return nil }
    let rest = old.bytes.count == 1 ? bytes[...] : bytes[old.bytes.count...]
    return ItemPath(bytes: (new.bytes.count == 1 ? [] : new.bytes) + rest)
  }

  /// The one order in which several items are acquired: a directory, all that is in it, and then what
  /// comes after it. With what is in it anywhere else, two accesses could wait for each other.
  package static func precedes(_ left: ItemPath, _ right: ItemPath) -> Bool {
    left.bytes.lexicographicallyPrecedes(right.bytes) {
      ($0 == slash ? 0 : $0) < ($1 == slash ? 0 : $1)
    }
  }
}
