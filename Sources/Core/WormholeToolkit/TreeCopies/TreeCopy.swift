package import WormholeSystem

/// Copies an item, a file or a directory with all below it, while others may keep changing it.
///
/// The copy keeps content, with its holes, permission bits, modification times, extended attributes
/// including access control lists, and owner and group where this user may set them. Symbolic links
/// are copied as links, FIFOs are created, a socket gets a second name or is left out; a
/// device is refused. A file with several names in the tree becomes a file for each; attributes of
/// symbolic links and FIFOs are not copied. An entry that vanishes before it was copied is left
/// out. The copy never follows a symbolic link or waits for the other end of a FIFO.
///
/// After a failure the partial copy stays; the caller removes it.
package struct TreeCopy {
  package enum Mode {
    /// Files share their content with the original until one is changed, if the file system
    /// supports that; otherwise content is copied.
    case copy
    /// All but directories are a second name of the original, if the system permits that; otherwise
    /// they are copied.
    case link
  }

  var mode: Mode
  /// The names that are not copied, at any depth below the item.
  var leavesOut: (FileName) -> Bool
  /// Called between entries and between pieces of a large file; its errors end the copy.
  var check: () throws -> Void
  /// Whether a directory with another file system mounted on it is an error: a move of the whole
  /// item cannot include it.
  var refusesMounts: Bool
  /// Whether a change of the copy within the same tick of the file system's clock must be visible: the
  /// time of a file that was just written becomes a nanosecond earlier.
  var isDistinct: Bool

  package init(
    mode: Mode = .copy, leavesOut: @escaping (FileName) -> Bool = { _ in false },
    check: @escaping () throws -> Void = {}, refusesMounts: Bool = false, isDistinct: Bool = false
  ) {
    self.mode = mode
    self.leavesOut = leavesOut
    self.check = check
    self.refusesMounts = refusesMounts
    self.isDistinct = isDistinct
  }

  /// Copies an entry of one directory to another, where its new name must be free.
  ///
  /// - Parameter leave: takes each entry that cannot be read, with the reason, and the copy
  ///   continues without it; if nil, the first one ends the copy.
  /// - Throws: `TreeError` with the path of the entry that could not be copied, even if the item
  ///   itself is missing, or is a socket. The errors of `check`.
  /// - Complexity: about eight system calls for a file, and its content; memory for one
  ///   piece of a file and for the names of a directory's subdirectories.
  package func copy(
    _ name: FileName, at source: Int32, to newName: FileName, at target: Int32,
    leaving leave: ((TreeError) -> Void)? = nil
  ) throws {
    let leaving = LeavingOut(take: leave)
    try leaving.attempt(removing: newName, at: target) {
      try copyItem(name, at: source, to: newName, at: target, leaving)
    }
  }

  private func copyItem(
    _ name: FileName, at source: Int32, to newName: FileName, at target: Int32,
    _ leaving: LeavingOut
  ) throws {
    let path = TreePath(name)
    let status = try reporting("copy", path, fileStatus(name, at: source))
    let inherits = try reporting(
      "copy", path,
      FileMetadata.areInherited(in: FileDescriptor.open(".", at: target, [.readOnly, .directory])))
    var entries = EntryCopy(
      mode: mode, check: check, dropsInherited: inherits, isDistinct: isDistinct)
    guard status.kind != .socket else {
      throw TreeError(action: "copy", path: path, reason: .unsupported(.socket))
    }
    if status.kind == .directory {
      try copyDirectory(name, at: source, to: newName, at: target, &entries, leaving)
    } else {
      let done = try entries.copy(name, at: source, to: newName, at: target, path: path)
      guard done else {
        throw TreeError(action: "copy", path: path, reason: .refused(.noSuchFile))
      }
    }
  }

  private func copyDirectory(
    _ name: FileName, at source: Int32, to newName: FileName, at target: Int32,
    _ entries: inout EntryCopy, _ leaving: LeavingOut
  ) throws {
    let path = TreePath(name)
    let from = try reporting("copy", path, SharedDescriptor(openDirectory(name, at: source)))
    let metadata = try reporting("copy", path, FileMetadata(of: from.descriptor))
    let to = try reporting("copy", path, makeAndOpen(newName, at: target))
    var visitor = TreeCopyVisitor(
      leavesOut: leavesOut, leaving: leaving, entries: entries, target: DirectoryChain(root: to),
      device: refusesMounts ? metadata.status.device : nil)
    try visitor.walk("copy", through: from, path: path)
    entries = visitor.entries
    try reporting("copy", path, entries.apply(metadata, to: to.descriptor))
  }
}

/// Creates a directory that only this user may use until it gets its final mode.
func makeAndOpen(_ name: FileName, at directory: Int32) throws(Errno) -> SharedDescriptor {
  try makeDirectory(name, at: directory, mode: 0o700)
  return SharedDescriptor(try openDirectory(name, at: directory))
}

/// Continues without entries that cannot be read, if the caller takes them.
private struct LeavingOut {
  let take: ((TreeError) -> Void)?

  /// - Parameter name: the copy of the entry, of which a part may be there.
  /// - Returns: nil for an entry that was left out.
  @discardableResult
  func attempt<Result>(
    removing name: FileName, at target: Int32, _ step: () throws -> Result
  ) throws -> Result? {
    do {
      return try step()
    } catch let error as TreeError {
      // A directory is entered instead.
      guard let take, error.isOfOneEntry, error.reason != .refused(.isDirectory) else {
        throw error
      }
      _ = try reporting(error.action, error.path, removeIfPresent(name, at: target))
      take(error)
      return nil
    }
  }
}

/// Creates the copies of the directories that a walk goes through.
private struct TreeCopyVisitor: TreeVisitor {
  let leavesOut: (FileName) -> Bool
  let leaving: LeavingOut
  var entries: EntryCopy
  var target: DirectoryChain
  /// The only file system to copy; nil for any.
  let device: UInt64?
  // The metadata of directories that were entered and not yet left, to be set on leaving.
  var metadata: [FileMetadata] = []

  mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePosition) throws -> Void? {
    guard !leavesOut(entry.name) else { return nil }
    try entries.check()
    if entry.isDirectory ?? isDirectory(entry.name, at: place.rawValue) { return () }
    return try copyEntry(entry.name, at: place)
  }

  mutating func enter(_ name: FileName, _ mark: Void, at place: TreePosition) throws
    -> SharedDescriptor?
  {
    try entries.check()
    let path = place.path.appending(name)
    let to = try targetDirectory(path)
    let opened = try leaving.attempt(removing: name, at: to.descriptor.rawValue) {
      try reporting(
        "copy", path,
        tolerating(Errno.noDirectory, SharedDescriptor(openDirectory(name, at: place.rawValue))))
    }
    guard let opened else { return nil }
    guard let source = opened else {
      // It has vanished, or has become something else, which is copied instead.
      _ = try copyEntry(name, at: place)
      return nil
    }
    let original = try reporting("copy", path, FileMetadata(of: source.descriptor))
    if let device, original.status.device != device {
      throw TreeError(action: "copy", path: path, reason: .mountPoint)
    }
    let made = try reporting("copy", path, makeAndOpen(name, at: to.descriptor.rawValue))
    metadata.append(original)
    try reporting("copy", path, target.descend(name, into: made))
    return source
  }

  mutating func leave(_ name: FileName, at place: TreePosition?) throws {
    let path = place.map { $0.path.appending(name) } ?? TreePath(name)
    let done = try targetDirectory(path)
    let kept = metadata.removeLast()
    try reporting("copy", path, entries.apply(kept, to: done.descriptor))
    target.ascend()
  }
}

extension TreeCopyVisitor {
  // No other process knows the copy, so a directory of it that has vanished is an error.
  private func targetDirectory(_ path: TreePath) throws(TreeError) -> SharedDescriptor {
    guard let current = target.current else {
      throw TreeError(action: "copy", path: path, reason: .refused(.noSuchFile))
    }
    return current
  }

  /// - Returns: nil, unless the entry has become a directory, which must then be entered.
  private mutating func copyEntry(_ name: FileName, at place: TreePosition) throws -> Void? {
    let to = try targetDirectory(place.path)
    do {
      // A copy, because it changes in the closure.
      var copying = entries
      defer { entries = copying }
      try leaving.attempt(removing: name, at: to.descriptor.rawValue) {
        _ = try copying.copy(
          name, at: place.rawValue, to: name, at: to.descriptor.rawValue,
          path: place.path.appending(name))
      }
      return nil
    } catch let error as TreeError where error.reason == .refused(.isDirectory) {
      return ()
    }
  }
}
