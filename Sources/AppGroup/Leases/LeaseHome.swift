package import SystemCalls

/// What surrounds the directory of a lease: with which modes things are made in it, and where goes
/// what was not made by us. A container is one (`ContainerRoot`); so is the hidden directory beside a
/// file that is being coordinated.
package protocol LeaseHome: Sendable {
  /// Makes a directory; one that is there already is fine.
  ///
  /// - Parameter staging: where it is made first if it must be seen only with its mode.
  func makeDirectoryIfMissing(
    _ path: String, at directory: Int32, staging: String?
  ) throws(Errno)

  /// Makes a file for writing; fails if the name is taken.
  func createFile(_ path: String, at directory: Int32) throws(Errno) -> FileDescriptor

  /// Moves aside, in one step, what lies in a lease and is not the lease's.
  func setAside(_ name: FileName, at source: Int32) throws(Errno)

  /// Moves aside a directory, in one step, and nothing else.
  func setAsideDirectory(_ name: String, at source: Int32) throws(Errno)

  /// Gives a file that is about to be published its version.
  func stamp(_ file: borrowing FileDescriptor) throws(Errno) -> Stamp
}

extension ContainerRoot: LeaseHome {
  package func setAside(_ name: FileName, at source: Int32) throws(Errno) {
    try Quarantine.take(name, at: source, root: self)
  }

  package func setAsideDirectory(_ name: String, at source: Int32) throws(Errno) {
    try Quarantine.takeDirectory(name, at: source, root: self)
  }

  package func stamp(_ file: borrowing FileDescriptor) throws(Errno) -> Stamp {
    try Stamp.put(on: file, in: self)
  }
}
