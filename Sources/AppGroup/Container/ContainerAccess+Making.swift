package import SystemCalls

/// How directories and files are made so that those who may use them can.
extension ContainerAccess {
  /// Makes a directory with the mode of such access; one that is there already is fine.
  ///
  /// - Parameter staging: where it is made first, where the umask may take the group's bits away:
  ///   seen only with its mode, it never keeps the group's other members out, however this ends.
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
        // Swept already. Else it is empty and in nobody's way, and the cause matters more.
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

  private func exists(_ path: String, at directory: Int32) throws(Errno) -> Bool {
    do throws(Errno) {
      _ = try fileStatus(path, at: directory)
      return true
    } catch {
      guard error == .noSuchFile else { throw error }
      return false
    }
  }

  /// Makes a file with the mode of such access, for writing; fails if the name is taken.
  package func createFile(_ path: String, at directory: Int32) throws(Errno) -> FileDescriptor {
    let file = try FileDescriptor.open(
      path, at: directory, [.writeOnly, .create, .exclusive, .noFollow], mode: fileMode)
    if self == .group { try file.setPermissions(fileMode) }
    return file
  }
}
