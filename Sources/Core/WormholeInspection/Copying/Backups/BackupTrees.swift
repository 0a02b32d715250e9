import WormholeSystem

/// Writes an item, a directory with everything below it, as members of an archive.
struct TreePacking: TreeVisitor {
  let writer: TarWriter

  /// - Parameters:
  ///   - name: The directory's name, with which the paths in the archive begin.
  ///   - directory: Where it is.
  mutating func run(_ name: FileName, at directory: Int32) throws {
    let root = SharedDescriptor(try openDirectory(name, at: directory))
    try writer.put(entry(name.bytes, root.descriptor.status(), kind: .directory))
    try walk("back up", through: root, path: TreePath(name))
  }

  private func entry(
    _ path: [UInt8], _ status: FileStatus, kind: TarEntry.Kind, target: [UInt8] = []
  ) -> TarEntry {
    TarEntry(
      path: path, kind: kind, permissions: status.permissions,
      size: kind == .file ? status.size : 0, seconds: status.modifiedSeconds,
      nanoseconds: status.modifiedNanoseconds, target: target)
  }

  mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePlace) throws -> Void? {
    let path = place.path.appending(entry.name).bytes
    let status = try fileStatus(entry.name, at: place.rawValue)
    switch status.kind {
    case .directory: return ()
    case .regular:
      let file = try FileDescriptor.open(
        entry.name, at: place.rawValue, [.readOnly, .noFollow, .nonBlocking])
      try writer.put(self.entry(path, file.status(), kind: .file), contentOf: file)
    case .symbolicLink:
      let target = try linkTarget(entry.name, at: place.rawValue).bytes
      try writer.put(self.entry(path, status, kind: .link, target: target))
    case .fifo: try writer.put(self.entry(path, status, kind: .fifo))
    // A socket is useless without its process, and the copy has no devices.
    case .socket, .device: return nil
    }
    return nil
  }

  mutating func enter(
    _ name: FileName, _ mark: Void, at place: TreePlace
  ) throws -> SharedDescriptor? {
    let directory = SharedDescriptor(try openDirectory(name, at: place.rawValue))
    let path = place.path.appending(name).bytes
    try writer.put(entry(path, directory.descriptor.status(), kind: .directory))
    return directory
  }
}

/// Creates the items of an archive below a directory that no other process uses. No path in an
/// archive leads out of it: each part of a path is opened without following a link.
final class TreeUnpacking {
  /// The directories down to the last used one: the next one is near it.
  private var chain: DirectoryChain
  private var here: [UInt8] = []
  /// The final permissions of directories, which may be read-only.
  private var permissions: [(path: [UInt8], bits: UInt32)] = []

  init(at root: SharedDescriptor) { chain = DirectoryChain(root: root) }

  /// The kernel's errors for a path without a directory, or for a repeated path.
  private static let ofPaths: [Errno] = [
    .noSuchFile, .alreadyExists, .notDirectory, .tooManyLinks, .fileNameTooLong, .invalidArgument,
  ]

  /// - Throws: `TarEntry.Malformed` for an entry outside the directory; `Errno`.
  func make(_ entry: TarEntry, contentOf reader: TarReader) throws {
    do {
      try makeEntry(entry, reader)
    } catch let error as Errno where Self.ofPaths.contains(error) {
      let path = String(decoding: entry.path, as: UTF8.self)
      throw TarEntry.Malformed("\(path) cannot be made: \(error)")
    }
  }

  private func makeEntry(_ entry: TarEntry, _ reader: TarReader) throws {
    let slash = entry.path.lastIndex(of: 0x2F)
    let name = FileName(bytes: Array(entry.path[(slash.map { $0 + 1 } ?? 0)...]))
    try check(name)
    let parent = try directory(Array(entry.path[..<(slash ?? 0)]))
    let place = parent.descriptor.rawValue
    // A program that comes from elsewhere does not run as its owner.
    let bits = entry.permissions & (entry.kind == .directory ? 0o3777 : 0o777)
    switch entry.kind {
    case .directory:
      try makeDirectory(name, at: place, mode: 0o700)
      if bits != 0o700 { permissions.append((entry.path, bits)) }
    case .link: try makeLink(to: entry.target, name, at: place)
    case .fifo: try makeFIFO(name, at: place)
    case .file:
      let file = try FileDescriptor.open(
        name, at: place, [.writeOnly, .create, .exclusive, .noFollow])
      try reader.content(of: entry) { try file.writeAll(Array($0)) }
      try file.setPermissions(bits)
      try file.setModified(seconds: entry.seconds, nanoseconds: entry.nanoseconds)
    }
  }

  /// Gives directories their permissions.
  func finish() throws {
    for (path, bits) in permissions.reversed() {
      try directory(path).descriptor.setPermissions(bits)
    }
  }

  private func makeLink(to target: [UInt8], _ name: FileName, at place: Int32) throws {
    guard !target.isEmpty, !target.contains(0) else {
      throw TarEntry.Malformed("a link leads nowhere")
    }
    try makeSymbolicLink(name, at: place, target: FileName(bytes: target))
  }

  private func check(_ name: FileName) throws {
    guard !name.bytes.isEmpty, !name.bytes.contains(0), ![".", ".."].contains(name.text) else {
      throw TarEntry.Malformed("a path leads elsewhere")
    }
  }

  private func directory(_ path: [UInt8]) throws -> SharedDescriptor {
    while !here.isEmpty, !isHere(orBelow: path) {
      chain.ascend()
      here = Array(here[..<(here.lastIndex(of: 0x2F) ?? 0)])
    }
    var rest = path[here.count...]
    if !here.isEmpty { rest = rest.dropFirst() }
    for part in rest.split(separator: 0x2F, omittingEmptySubsequences: false) where !rest.isEmpty {
      let name = FileName(bytes: Array(part))
      try check(name)
      let place = try current
      try chain.descend(
        name, into: SharedDescriptor(try openDirectory(name, at: place.descriptor.rawValue)))
      here += here.isEmpty ? name.bytes : [0x2F] + name.bytes
    }
    return try current
  }

  private func isHere(orBelow path: [UInt8]) -> Bool {
    path.starts(with: here) && (path.count == here.count || path[here.count] == 0x2F)
  }

  private var current: SharedDescriptor {
    get throws(Errno) {
      guard let current = chain.current else { throw .noSuchFile }
      return current
    }
  }
}
