import SystemCalls

/// Makes, beside the directories that a walk goes through, their copies.
struct TreeCopyVisitor: TreeVisitor {
  private let leavesOut: (FileName) -> Bool
  private(set) var entries: EntryCopy
  private var target: DirectoryChain
  // Of the directories that were entered and not yet left, to be set when they are.
  private var metadata: [FileMetadata]
  /// The only file system to be copied; nil for any.
  private let device: UInt64?

  init(
    leavesOut: @escaping (FileName) -> Bool, entries: EntryCopy, root: SharedDescriptor,
    device: UInt64?
  ) {
    self.leavesOut = leavesOut
    self.entries = entries
    target = DirectoryChain(root: root)
    self.device = device
    metadata = []
  }

  mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePlace) throws -> Void? {
    guard !leavesOut(entry.name) else { return nil }
    try entries.check()
    let path = { place.path.appending(entry.name) }
    if entry.isDirectory ?? isDirectory(entry.name, at: place) { return () }
    return try copyEntry(entry.name, at: place, path())
  }

  mutating func enter(_ name: FileName, _ mark: Void, at place: TreePlace) throws
    -> SharedDescriptor?
  {
    try entries.check()
    let path = place.path.appending(name)
    guard let source = try opened(name, at: place, path) else { return nil }
    let original = try reporting("copy", path, FileMetadata(of: source.descriptor))
    if let device, original.status.device != device {
      throw TreeError(action: "copy", path: path, reason: .mountPoint)
    }
    let to = try targetDirectory(path)
    let made = try reporting("copy", path, makeAndOpen(name, at: to.descriptor.rawValue))
    metadata.append(original)
    try reporting("copy", path, target.descend(name, into: made))
    return source
  }

  mutating func leave(_ name: FileName, at place: TreePlace?) throws {
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

  private func isDirectory(_ name: FileName, at place: TreePlace) -> Bool {
    do throws(Errno) {
      return try fileStatus(name, at: place.rawValue).kind == .directory
    } catch {
      // Copying the entry reports what is wrong with it.
      return false
    }
  }

  /// - Returns: nil; but not nil when the entry has become a directory, which is to be entered.
  private mutating func copyEntry(
    _ name: FileName, at place: TreePlace, _ path: @autoclosure () -> TreePath
  ) throws -> Void? {
    let to = try targetDirectory(place.path)
    do {
      _ = try entries.copy(
        name, at: place.rawValue, to: name, at: to.descriptor.rawValue, path: path())
      return nil
    } catch let error as TreeError where error.reason == .refused(.isDirectory) {
      return ()
    }
  }

  // Nil when it has vanished, or has become something else, which is copied instead.
  private mutating func opened(
    _ name: FileName, at place: TreePlace, _ path: TreePath
  ) throws -> SharedDescriptor? {
    let opened = try reportingUnless(
      Errno.noDirectory, "copy", path, SharedDescriptor(openDirectory(name, at: place.rawValue)))
    if opened == nil { _ = try copyEntry(name, at: place, path) }
    return opened
  }
}
