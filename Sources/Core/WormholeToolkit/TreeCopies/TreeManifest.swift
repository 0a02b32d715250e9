package import WormholeSystem

/// The content of an item at one time: enough of each entry to detect later changes.
///
/// Before Linux 6.13 a kernel's clock for files ticks every few milliseconds: a file that is written in
/// place twice within one tick, to the same size, looks the same after both (as in git's "racy"
/// index; "Racy git", git's technical documentation).
///
/// The entries of a directory are stored side by side, and their names in one buffer: about 100
/// bytes an entry.
package struct TreeManifest: Sendable {
  package struct Entry: Sendable {
    fileprivate(set) var nameStart: UInt32 = 0
    fileprivate(set) var nameLength: UInt8 = 0
    package let kind: FileStatus.Kind
    package let permissions: UInt16
    package let owner: UInt32
    package let group: UInt32
    package let links: UInt32
    fileprivate(set) var firstChild: UInt32 = 0
    fileprivate(set) var childCount: UInt32 = 0
    package let device: UInt64
    package let inode: UInt64
    package let size: Int64
    package let modified: Int64
    package let changed: Int64
    /// For a symbolic link, a hash of its target; for a device, its number.
    package fileprivate(set) var target: UInt64

    package init(_ status: FileStatus) {
      kind = status.kind
      permissions = UInt16(truncatingIfNeeded: status.permissions)
      owner = status.owner
      group = status.group
      links = UInt32(truncatingIfNeeded: status.links)
      device = status.device
      inode = status.inode
      size = status.size
      modified = status.modifiedMoment.mark
      changed = status.changedMoment.mark
      target = status.representedDevice
    }
  }

  /// The item itself is the first; none when there is no item.
  package fileprivate(set) var entries: [Entry] = []
  fileprivate var names: [UInt8] = []

  /// For a missing item.
  package init() {}

  /// Looks at all entries of an item.
  ///
  /// - Parameters:
  ///   - leavesOut: the names that are left out, at any depth below the item.
  ///   - passesUnreadable: whether a directory below the item that cannot be read counts as empty.
  /// - Throws: `TreeError`; but not for a missing item, nor for entries that vanish.
  /// - Complexity: one system call for each entry, two more for a directory.
  package init(
    of name: FileName, at directory: Int32,
    leavingOut leavesOut: @escaping (FileName) -> Bool = { _ in false },
    passesUnreadable: Bool = false
  ) throws {
    // A program may put a directory in place of a file between two calls, but not forever.
    for _ in 0..<8 {
      var visitor = TreeManifestVisitor(
        leavesOut: leavesOut, passesUnreadable: passesUnreadable)
      guard try visitor.walk(name, at: directory) else { continue }
      self = visitor.manifest
      return
    }
    throw TreeError(action: "list", path: TreePath(name), reason: .refused(.deviceBusy))
  }
}

extension TreeManifest {
  /// The place of the item itself in `entries`; nil when there is no item.
  package var root: Int? { entries.isEmpty ? nil : 0 }

  /// The places in `entries` of the children of a directory; none for a file.
  func children(of index: Int) -> Range<Int> {
    let first = Int(entries[index].firstChild)
    return first..<first + Int(entries[index].childCount)
  }

  func name(of index: Int) -> FileName {
    let (start, length) = (Int(entries[index].nameStart), Int(entries[index].nameLength))
    return FileName(bytes: Array(names[start..<start + length]))
  }
}

private struct TreeManifestVisitor: TreeVisitor {
  let leavesOut: (FileName) -> Bool
  let passesUnreadable: Bool
  var manifest = TreeManifest()
  // The directories that were entered and not yet left.
  var entered = [0]

  /// Visits an item and everything below it, if it exists.
  ///
  /// - Returns: false when it became another kind of file meanwhile.
  mutating func walk(_ name: FileName, at directory: Int32) throws -> Bool {
    let path = TreePath(name)
    guard let status = try manifestStatus(name, at: directory, path) else { return true }
    guard status.kind == .directory else {
      add(FileName(""), status, target: name, at: directory)
      return true
    }
    guard let root = try opened(name, at: directory, path) else { return false }
    let opened = try reporting("list", path, root.descriptor.status())
    add(FileName(""), opened, target: name, at: directory)
    try walk("list", through: root, path: path)
    return true
  }

  /// - Returns: nil if the directory is gone.
  private func opened(
    _ name: FileName, at directory: Int32, _ path: @autoclosure () -> TreePath
  ) throws(TreeError) -> SharedDescriptor? {
    try reporting(
      "list", path(),
      tolerating(Errno.noDirectory, SharedDescriptor(openDirectory(name, at: directory))))
  }

  mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePosition) throws -> Int? {
    guard !leavesOut(entry.name) else { return nil }
    guard
      let status = try manifestStatus(
        entry.name, at: place.rawValue, place.path.appending(entry.name))
    else { return nil }
    let index = manifest.entries.count
    let parent = entered[entered.count - 1]
    add(entry.name, status, target: entry.name, at: place.rawValue)
    if manifest.entries[parent].childCount == 0 {
      manifest.entries[parent].firstChild = UInt32(index)
    }
    manifest.entries[parent].childCount += 1
    return status.kind == .directory ? index : nil
  }

  mutating func enter(_ name: FileName, _ mark: Int, at place: TreePosition) throws
    -> SharedDescriptor?
  {
    // Vanished, or replaced, after its name was read: it counts as an empty directory.
    do throws(TreeError) {
      let opened = try opened(name, at: place.rawValue, place.path.appending(name))
      if opened != nil { entered.append(mark) }
      return opened
    } catch {
      guard passesUnreadable, error.isOfOneEntry else { throw error }
      return nil
    }
  }

  mutating func leave(_ name: FileName, at place: TreePosition?) throws {
    entered.removeLast()
  }

  private mutating func add(
    _ name: FileName, _ status: FileStatus, target: FileName, at directory: Int32
  ) {
    var entry = TreeManifest.Entry(status)
    entry.nameStart = UInt32(truncatingIfNeeded: manifest.names.count)
    entry.nameLength = UInt8(truncatingIfNeeded: name.bytes.count)
    if status.kind == .symbolicLink { entry.target = hashOfTarget(target, at: directory) }
    manifest.names += name.bytes
    manifest.entries.append(entry)
  }

  // FNV-1a, 64 bits (Fowler, Noll, Vo; RFC 9923).
  private func hashOfTarget(_ name: FileName, at directory: Int32) -> UInt64 {
    // It fails if it has vanished, or is no longer a link: the next scan shows that.
    guard let target = try? linkTarget(name, at: directory) else { return 0 }
    return target.bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }
}

/// Nil for a missing entry.
private func manifestStatus(
  _ name: FileName, at directory: Int32, _ path: @autoclosure () -> TreePath
) throws(TreeError) -> FileStatus? {
  try reporting("list", path(), tolerating(Errno.vanishing, fileStatus(name, at: directory)))
}

extension TreeManifest.Entry {
  /// Whether the entry is unchanged.
  ///
  /// For a directory only owner and mode count, because its entries are compared themselves. A
  /// second name changes a file's time of last change, too, so that time counts only if the file
  /// has as many names as before.
  ///
  /// - Parameter apartFromNames: whether that time never counts, because a name was added and removed.
  package func isUnchanged(
    since base: TreeManifest.Entry, apartFromNames: Bool = false
  ) -> Bool {
    guard kind == base.kind, permissions == base.permissions, owner == base.owner,
      group == base.group
    else { return false }
    if kind == .directory { return true }
    return inode == base.inode && device == base.device && size == base.size
      && modified == base.modified && target == base.target
      && (changed == base.changed || links != base.links || apartFromNames)
  }
}

extension FileStatus {
  /// Whether the file is unchanged; for a directory, whether it has the same owner and mode.
  package func isUnchanged(since base: FileStatus, apartFromNames: Bool = false) -> Bool {
    TreeManifest.Entry(self)
      .isUnchanged(since: TreeManifest.Entry(base), apartFromNames: apartFromNames)
  }

  /// Whether the file was written a moment ago: before Linux 6.13 the kernel's clock for files
  /// ticks coarsely (every 10 ms on some machines), so a later write of as many bytes may leave no
  /// trace in the status. Some file systems count whole seconds, FAT every other second.
  package var isJustWritten: Bool {
    let tick: Duration = modifiedNanoseconds == 0 ? .milliseconds(2_020) : .milliseconds(20)
    let age = age
    return size > 0 && age > .seconds(-1) && age < tick
  }
}

extension TreeManifest {
  /// Whether the item and everything below it is unchanged, or the item is still missing.
  package func isUnchanged(since base: TreeManifest) -> Bool {
    changes(since: base, atMost: 1).isEmpty
  }

  /// The entries that were changed, added or removed. An added or removed directory is listed
  /// without its entries; the path of the item itself is empty.
  package func changes(since base: TreeManifest, atMost limit: Int) -> [TreePath] {
    guard let root, let baseRoot = base.root else {
      return root == nil && base.root == nil ? [] : [TreePath()]
    }
    var changes: [TreePath] = []
    if !entries[root].isUnchanged(since: base.entries[baseRoot]) { changes.append(TreePath()) }
    // Directories then and now. Only these and changes get a path: most entries are neither.
    var waiting = [(path: TreePath(), now: root, then: baseRoot)]
    while changes.count < limit, let (path, index, baseIndex) = waiting.popLast() {
      guard [entries[index].kind, base.entries[baseIndex].kind] == [.directory, .directory] else {
        continue
      }
      let old = base.children(of: baseIndex).map { (base.name(of: $0), $0) }
      var gone = Dictionary(old) { first, _ in first }
      for now in children(of: index) {
        let name = name(of: now)
        guard let then = gone.removeValue(forKey: name) else {
          changes.append(path.appending(name))
          continue
        }
        if !entries[now].isUnchanged(since: base.entries[then]) {
          changes.append(path.appending(name))
        }
        if entries[now].kind == .directory { waiting.append((path.appending(name), now, then)) }
      }
      changes += gone.keys.map { path.appending($0) }
    }
    let ordered = changes.ordered { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    return Array(ordered.prefix(limit))
  }
}
