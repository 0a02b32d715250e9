import Wormhole
import WormholeSystem
import WormholeToolkit

/// A second copy of directories that others keep changing: each pass copies only the changes since
/// the last one.
///
/// After a pass that finds no change, the copy is as the original was when that pass began: each
/// entry was seen before and after that moment, unchanged. Names stay bytes.
final class TreeSnapshot {
  /// An item that is copied as a whole: a file, or a directory with everything below it.
  struct Item {
    /// The directory that contains it, relative to the container; empty for the container itself.
    let place: [UInt8]
    let name: FileName
    /// The primitive whose name it belongs to, if any; the parts of a log count as one.
    var owner: NameKind.Primitive?
    /// The names below it that are left out.
    var leavesOut: @Sendable (FileName) -> Bool = { _ in false }

    var path: [UInt8] { place.isEmpty ? name.bytes : place + [0x2F] + name.bytes }
  }

  private let source: ContainerRoot
  private let target: ContainerRoot
  /// Called after each item and each copied entry.
  private let check: () throws -> Void
  private let items: (inout NameFaults) throws -> [Item]
  /// What the last pass could not look at.
  private var missed = NameFaults()
  /// What could not be copied, by its path.
  private var unread: [[UInt8]: WormholeError] = [:]
  private var known: [[UInt8]: (item: Item, manifest: TreeManifest)] = [:]

  /// - Parameters:
  ///   - target: The container of the copy, which no other process uses.
  ///   - items: The current items.
  init(
    of source: ContainerRoot, to target: ContainerRoot, check: @escaping () throws -> Void,
    items: @escaping (inout NameFaults) throws -> [Item]
  ) {
    self.source = source
    self.target = target
    self.check = check
    self.items = items
  }

  /// What is left out.
  var faults: NameFaults {
    var all = missed
    for (_, fault) in unread.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
      all.add(fault)
    }
    return all
  }

  /// The number of logs, and of items that belong to no name.
  var count: Int {
    let items = known.values.lazy.filter {
      $0.manifest.root != nil && [nil, .log].contains($0.item.owner)
        && self.unread[$0.item.path] == nil
    }
    return Set(items.map { $0.item.owner == .log ? $0.item.place : $0.item.path }).count
  }

  /// The number of queue files, and the bytes of all files.
  var size: (entries: Int, bytes: Int) {
    known.values.reduce((0, 0)) { size, next in
      let files = next.manifest.entries.filter { $0.kind == .regular }
      return (
        size.0 + (next.item.owner == .queue ? files.count : 0),
        files.reduce(size.1) { $0.adding(size: $1.size) }
      )
    }
  }

  /// Copies the changes since the last pass, and returns their number.
  func pass() throws -> Int {
    // An item that has vanished, or can no longer be read, stays in it.
    var left = known
    var changes = 0
    var missed = NameFaults()
    let handle = try source.handle()
    for item in try items(&missed) {
      try check()
      let path = source.path + "/" + String(decoding: item.path, as: UTF8.self)
      let now = try missed.attempt("copy the container", path: path) { () throws -> TreeManifest? in
        // None if a link has taken its place: the next listing shows that.
        guard let place = try open(item.place, at: handle.descriptor.rawValue) else { return nil }
        return try naming([item.place]) {
          try TreeManifest(
            of: item.name, at: place.rawValue, leavingOut: item.leavesOut, passesUnreadable: true)
        }
      }
      guard let now = now ?? nil else { continue }
      let before = left.removeValue(forKey: item.path)?.manifest
      let found = now.changes(since: before ?? TreeManifest(), atMost: .max)
      changes += found.count
      try copy(found, of: item, at: handle.descriptor.rawValue)
      known[item.path] = (item, now)
    }
    for (path, gone) in left {
      if gone.manifest.root != nil { changes += 1 }
      try remove(TreePath(), of: gone.item)
      known[path] = nil
    }
    self.missed = missed
    return changes
  }

  /// Opens a directory, without following a link on the way.
  private func open(_ path: [UInt8], at root: Int32) throws(Errno) -> FileDescriptor? {
    var place = try FileDescriptor.open(".", at: root, [.pathOnly, .directory])
    for part in path.split(separator: 0x2F) {
      let next = try tolerating(
        [.noSuchFile, .notDirectory],
        FileDescriptor.open(
          FileName(bytes: Array(part)), at: place.rawValue, [.pathOnly, .directory, .noFollow]))
      guard let next else { return nil }
      place = next
    }
    return place
  }

  private func copy(_ changes: [TreePath], of item: Item, at root: Int32) throws {
    guard !changes.isEmpty, let open = try open(item.place, at: root) else { return }
    let place = open.rawValue
    for path in changes {
      do {
        try copy(path, of: item, at: place)
      } catch let error as Errno where error == .noSuchFile {
        // A directory on the way did not exist when it should have been copied.
        try remove(TreePath(), of: item)
        return try copy(TreePath(), of: item, at: place)
      }
    }
  }

  /// - Throws: `.noSuchFile` if the copy has no directory for it.
  private func copy(_ path: TreePath, of item: Item, at place: Int32) throws {
    let (above, name) = Self.split(path, of: item)
    try remove(path, of: item)
    // Without following a link that has taken the place of a directory.
    guard let from = try open(above, at: place) else { return }
    let to = try makePlace(item, above)
    var unread: [TreeError] = []
    do {
      try naming([item.place, above]) {
        try Self.changing(to) {
          try TreeCopy(leavesOut: item.leavesOut, check: check)
            .copy(name, at: from.rawValue, to: name, at: to.rawValue) { unread.append($0) }
        }
      }
    } catch let error as TreeError where error.isVanishing {
      return
    }
    for fault in unread {
      let path = joined([item.place, above, fault.path.bytes])
      self.unread[path] = reported(fault, at: path, in: source)
    }
  }

  private func joined(_ parts: [[UInt8]]) -> [UInt8] {
    Array(parts.filter { !$0.isEmpty }.joined(separator: [0x2F]))
  }

  private func reported(
    _ error: TreeError, at path: [UInt8], in root: ContainerRoot
  ) -> WormholeError {
    let action = "copy the container"
    let path = root.path + "/" + String(decoding: path, as: UTF8.self)
    guard case .refused(let refusal) = error.reason else {
      return WormholeError(.notAValue, action, path: path, reason: error.explanation)
    }
    return .refused(action, path: path, refusal)
  }

  /// Names the whole path in the kernel's error: the path in the copy if there was no room.
  ///
  /// - Parameter place: The parts of the path of the directory that holds the tree.
  private func naming<Result>(
    _ place: [[UInt8]], in root: ContainerRoot? = nil, _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let error as TreeError where !error.isVanishing {
      let isOfCopy =
        if case .refused(let cause) = error.reason { cause.isLackOfRoom } else { false }
      throw reported(
        error, at: joined(place + [error.path.bytes]), in: root ?? (isOfCopy ? target : source))
    }
  }

  /// Changes a directory of the copy, which may be read-only as its original is.
  private static func changing(
    _ directory: borrowing FileDescriptor, _ change: () throws -> Void
  ) throws {
    let permissions = try directory.status().permissions
    let isReadOnly = permissions & 0o200 == 0
    let place = directory.rawValue
    guard isReadOnly else { return try change() }
    try setPermissions(FileName("."), at: place, permissions | 0o200)
    let outcome = Result { try change() }
    try setPermissions(FileName("."), at: place, permissions)
    try outcome.get()
  }

  private func remove(_ path: TreePath, of item: Item) throws {
    let (above, name) = Self.split(path, of: item)
    let gone = joined([item.place, above, name.bytes])
    unread = unread.filter { $0.key != gone && !$0.key.starts(with: gone + [0x2F]) }
    let handle = try target.handle()
    let root = handle.descriptor.rawValue
    guard let place = try open(item.place, at: root), let to = try open(above, at: place.rawValue)
    else { return }
    try naming([item.place, above], in: target) {
      try Self.changing(to) { try TreeRemoval().remove(name, at: to.rawValue) }
    }
  }

  /// - Returns: The directory that contains a path, seen from the item's, and the last name.
  private static func split(_ path: TreePath, of item: Item) -> (above: [UInt8], name: FileName) {
    guard let slash = path.bytes.lastIndex(of: 0x2F) else {
      return path.bytes.isEmpty
        ? ([], item.name) : (item.name.bytes, FileName(bytes: path.bytes))
    }
    return (
      item.name.bytes + [0x2F] + path.bytes[..<slash],
      FileName(bytes: Array(path.bytes[(slash + 1)...]))
    )
  }

  private func makePlace(_ item: Item, _ above: [UInt8]) throws -> FileDescriptor {
    let handle = try target.handle()
    let root = handle.descriptor.rawValue
    let ends = item.place.indices.filter { item.place[$0] == 0x2F } + [item.place.endIndex]
    for end in ends where end > 0 {
      try target.makeDirectoryIfMissing(
        String(decoding: item.place[..<end], as: UTF8.self), at: root)
    }
    guard let place = try open(item.place, at: root), let to = try open(above, at: place.rawValue)
    else { throw Errno.noSuchFile }
    return to
  }
}

// MARK: What there is

extension TreeSnapshot.Item {
  static let ofWatches = NameKind.own + "/watches"

  /// A group's files beside the container's own entries, and a phone app's directories for its
  /// watches.
  static func beside(in root: ContainerRoot, _ faults: inout NameFaults) throws -> [Self] {
    let own = try names(".", in: root, &faults).filter { !SharedContainer.isOurs($0) }
    let watches = try names(ofWatches, in: root, &faults)
    return own.map { Self(place: [], name: $0) }
      + watches.map { Self(place: Array(ofWatches.utf8), name: $0) }
  }

  /// The parts of names that are copied unchanged.
  static func parts(in root: ContainerRoot, _ faults: inout NameFaults) throws -> [Self] {
    var items: [Self] = []
    for kind in NameKind.users + NameKind.owns {
      let parts = root.parts(of: kind.primitive).filter { [.whole, .each].contains($0.copied) }
      guard !parts.isEmpty else { continue }
      for entry in try SharedContainer.listed(kind, in: root, &faults) {
        let place = kind.path + "/" + entry.name.text
        // One fault for the name, and not one for each of its parts.
        let isOpen = try faults.attempt("copy the container", path: root.path + "/" + place) {
          let handle = try root.handle()
          return try ifPresent(
            FileDescriptor.openBeneath(
              place, at: handle.descriptor.rawValue, [.readOnly, .directory])) != nil
        }
        guard isOpen == true else { continue }
        for part in parts {
          guard let file = part.name else { continue }
          let isWhole = part.copied == .whole
          let path = isWhole ? place : place + "/" + file
          for name in try isWhole ? [FileName(file)] : names(path, in: root, &faults) {
            items.append(
              Self(place: Array(path.utf8), name: name, owner: kind.primitive) { name in
                part.contains { $0.copied == .nothing && $0.isNamed(name) }
              })
          }
        }
      }
    }
    return items
  }

  private static func names(
    _ path: String, in root: ContainerRoot, _ faults: inout NameFaults
  ) throws -> [FileName] {
    let found = try faults.attempt("copy the container", path: root.path + "/" + path) {
      let handle = try root.handle()
      return try ContainerRoot.entries(path, at: handle.descriptor.rawValue)
    }
    return (found ?? nil)?.map(\.name) ?? []
  }
}

extension TreeError {
  fileprivate var isVanishing: Bool {
    [.noSuchFile, .staleHandle].contains { reason == .refused($0) }
  }
}

/// A copy of a group's files beside the container's own entries, in a directory that others may
/// use.
///
/// On etcd they are in this machine's directory of the container.
struct BesideCopy {
  private let items: [TreeSnapshot.Item]
  private let snapshot: TreeSnapshot?
  private let listing: NameFaults
  private let path: String

  /// - Throws: `WormholeError.nameCollision` if the directory has an entry with one of these names.
  init(_ source: ContainerRoot, to path: String, check: @escaping () throws -> Void) throws {
    self.path = path
    var met = NameFaults()
    items = try TreeSnapshot.Item.beside(in: source, &met)
    listing = met
    guard !items.isEmpty else {
      snapshot = nil
      return
    }
    try ContainerLocation.create(path)
    let target = try ContainerRoot(path: path, access: ContainerAccess(of: fileStatus(path)))
    let handle = try target.handle()
    let directory = handle.descriptor.rawValue
    for item in items where try exists(FileName(bytes: item.path), at: directory) {
      throw WormholeError(
        .nameCollision, "copy the container",
        path: path + "/" + String(decoding: item.path, as: UTF8.self),
        reason: "something is there already", remedy: "move it away")
    }
    snapshot = TreeSnapshot(of: source, to: target, check: check) {
      try TreeSnapshot.Item.beside(in: source, &$0)
    }
  }

  var count: Int { snapshot?.count ?? 0 }
  var faults: NameFaults { snapshot?.faults ?? listing }

  /// Copies the changes since the last time, and returns their number.
  func copy() throws -> Int { try snapshot?.pass() ?? 0 }

  func remove() {
    do {
      let directory = try FileDescriptor.open(path, [.readOnly, .directory])
      for item in items {
        try TreeRemoval().remove(FileName(bytes: item.path), at: directory.rawValue)
      }
    } catch {
      // The caller reports why the copy failed, and the next copy names the entry in its way.
      return
    }
  }
}
