/// Removes an item of any kind, a directory with everything below it, without following a symbolic
/// link or leaving the item's mount.
///
/// Directories of this user that forbid removal are made writable first. Other processes may remove
/// the same item meanwhile, or add to it for a while.
package struct TreeRemoval {
  // How often the removal looks for names that were added meanwhile.
  private static let passes = 100

  package init() {}

  /// Removes an entry of a directory; a missing entry counts as removed.
  ///
  /// - Throws: `TreeError` with the path of the entry that cannot be removed: a mount point, an
  ///   immutable file, an entry of another user's directory. Entries removed before stay removed.
  /// - Complexity: one call for a file, four for a directory; memory for the names of a directory's
  ///   subdirectories.
  package func remove(_ name: FileName, at directory: Int32) throws {
    let path = TreePath(name)
    var visitor = TreeRemovalVisitor()
    for _ in 0..<Self.passes {
      if try visitor.removesFile(name, at: directory, path) { return }
      guard let root = try visitor.open(name, at: directory, path) else { continue }
      try visitor.walk("remove", through: root, path: path)
      if try visitor.removesDirectory(name, at: directory, path) { return }
    }
    throw TreeError(action: "remove", path: path, reason: .refused(.directoryNotEmpty))
  }
}

private struct TreeRemovalVisitor: TreeVisitor {
  mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePosition) throws -> Void? {
    if entry.isDirectory == true { return () }
    return try removesFile(entry.name, at: place) ? nil : ()
  }

  mutating func enter(_ name: FileName, _ mark: Void, at place: TreePosition) throws
    -> SharedDescriptor?
  {
    let path = place.path.appending(name)
    let opened = try makingWritable(place, open(name, at: place.rawValue, path))
    // It has become another kind of file, or has vanished.
    if opened == nil { _ = try removesFile(name, at: place) }
    return opened
  }

  mutating func leave(_ name: FileName, at place: TreePosition?) throws {
    guard let place else { return }
    let path = place.path.appending(name)
    // The next pass removes a directory that is not empty after all.
    _ = try makingWritable(place, removesDirectory(name, at: place.rawValue, path))
  }

  private func removesFile(_ name: FileName, at place: TreePosition) throws -> Bool {
    try makingWritable(
      place, removesFile(name, at: place.rawValue, place.path.appending(name)))
  }

  // We may change a directory below the item, unlike the directory that contains the item.
  private func makingWritable<Result>(
    _ place: TreePosition, _ body: @autoclosure () throws(TreeError) -> Result
  ) throws(TreeError) -> Result {
    do throws(TreeError) {
      return try body()
    } catch {
      guard error.reason == .refused(.accessDenied) else { throw error }
      do throws(Errno) {
        let status = try place.directory.descriptor.status()
        try place.directory.descriptor.setPermissions(status.permissions | 0o700)
      } catch {
        // Another user's: the error below says what that means for the entry.
        return try body()
      }
      return try body()
    }
  }
}

/// The removal of one entry.
extension TreeRemovalVisitor {
  /// - Returns: false for a directory.
  func removesFile(
    _ name: FileName, at directory: Int32, _ path: @autoclosure () -> TreePath
  ) throws(TreeError) -> Bool {
    do throws(Errno) {
      try removeFile(name, at: directory)
      return true
    } catch {
      if error.isVanishing { return true }
      if error == .isDirectory { return false }
      // The error that POSIX prescribes for a directory, and the error for an immutable file.
      if error == .notPermitted, isDirectory(name, at: directory) { return false }
      throw refusal(error, path())
    }
  }

  /// - Returns: false when it is not empty.
  func removesDirectory(
    _ name: FileName, at directory: Int32, _ path: TreePath
  ) throws(TreeError) -> Bool {
    do throws(Errno) {
      return try tolerating(
        [.directoryNotEmpty, .alreadyExists], removeDirectory(name, at: directory)) != nil
    } catch {
      if error.isVanishing { return true }
      throw refusal(error, path)
    }
  }

  /// Opens a directory on the same mount; nil if the name is gone or names a file.
  func open(
    _ name: FileName, at directory: Int32, _ path: TreePath
  ) throws(TreeError) -> SharedDescriptor? {
    do throws(Errno) {
      if let open = try tolerating([.accessDenied], openOnce(name, at: directory)) {
        return SharedDescriptor(open)
      }
      // Through /proc, because no form of chmod is certain not to follow a symbolic link.
      let named = try FileDescriptor.open(name, at: directory, [.pathOnly, .directory, .noFollow])
      try setPermissions(
        FileName("/proc/self/fd/\(named.rawValue)"), at: Directory.current,
        named.status().permissions | 0o700)
      return SharedDescriptor(try openOnce(name, at: directory))
    } catch {
      if Errno.noDirectory.contains(error) { return nil }
      throw refusal(error, path)
    }
  }

  private func openOnce(_ name: FileName, at directory: Int32) throws(Errno) -> FileDescriptor {
    let options: OpenOptions = [.readOnly, .directory, .noFollow, .nonBlocking]
    if let opened = try tolerating(
      [.noFunction, .notPermitted], FileDescriptor.openSameMount(name, at: directory, options))
    {
      return opened
    }
    // A sandbox refuses openat2; then the device shows most mounts.
    let opened = try FileDescriptor.open(name, at: directory, options)
    let holder = try FileDescriptor.open(".", at: directory, [.pathOnly, .directory])
    guard try opened.status().device == holder.status().device else { throw .crossesDevices }
    return opened
  }

  private func refusal(_ error: Errno, _ path: TreePath) -> TreeError {
    let isMounted = error == .deviceBusy || error == .crossesDevices
    return TreeError(
      action: "remove", path: path, reason: isMounted ? .mountPoint : .refused(error))
  }
}

/// Removes a directory with everything in it.
package func removeTree(_ path: String) throws {
  let name = FileName(path.split(separator: "/").last.map(String.init) ?? "")
  let parent = try FileDescriptor.open(path + "/..", [.readOnly, .directory])
  try TreeRemoval().remove(name, at: parent.rawValue)
}
