package import SystemCalls

/// The creation of directories and files with the mode of a container's access.
extension ContainerAccess {
  /// Creates a directory with the mode of this access; succeeds if it exists.
  ///
  /// - Parameter staging: The place where the directory is created first, if the umask may remove
  ///   the group's bits. The directory becomes visible only with its full mode, so it never keeps
  ///   the group's other members out, even after a crash.
  package func makeDirectoryIfMissing(
    _ path: String, at directory: Int32, staging: String? = nil
  ) throws(Errno) {
    do throws(Errno) {
      guard self == .group else {
        return try makeDirectory(path, at: directory, mode: directoryMode)
      }
      guard try !exists(path, at: directory) else { return }
      let parent = path.lastIndex(of: "/").map { path[...$0] } ?? ""
      try makeShared(path, (staging ?? parent + ".new-") + Nonce.next(), at: directory)
    } catch {
      guard error == .alreadyExists else { throw error }
    }
  }

  private func makeShared(
    _ path: String, _ staged: String, at directory: Int32
  ) throws(Errno) {
    try makeDirectory(staged, at: directory, mode: directoryMode & 0o777)
    do throws(Errno) {
      try share(staged, at: directory)
      try rename(staged, at: directory, to: path, at: directory, .keep)
    } catch {
      let cause = error
      do throws(Errno) { try removeDirectory(staged, at: directory) } catch {
        // A sweep removed it already. Otherwise it is empty and harmless, and the cause matters
        // more.
        throw cause
      }
      // This file system has no such rename.
      guard cause == .invalidArgument else { throw cause }
      try makeDirectory(path, at: directory, mode: directoryMode & 0o777)
      try share(path, at: directory)
    }
  }

  private func share(_ path: String, at directory: Int32) throws(Errno) {
    let made = try FileDescriptor.openBeneath(path, at: directory, [.readOnly, .directory])
    try made.setPermissions(directoryMode)
  }

  /// Creates a file with the mode of this access, for writing; fails if the name is taken.
  package func createFile(_ path: String, at directory: Int32) throws(Errno) -> FileDescriptor {
    let file = try FileDescriptor.open(
      path, at: directory, [.writeOnly, .create, .exclusive, .noFollow], mode: fileMode)
    if self == .group { try file.setPermissions(fileMode) }
    return file
  }
}

extension FileStatus {
  /// Whether a file on its way to its name is so old that nobody works on it any more: a minute.
  package var isStale: Bool { modifiedSeconds <= realTime().seconds - 60 }
}
