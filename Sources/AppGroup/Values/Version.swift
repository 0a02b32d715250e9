import SystemCalls

/// Which publication of a value a file is: two publications never have the same version.
///
/// The inode alone comes back quickly on ext4, and the kernel's time stamps are as coarse as its
/// timer, so every publication of ours sets its own modification time to the nanosecond. Programs
/// that do not know us are told apart by the rest.
public struct Version: Hashable, Sendable {
  package let stamp: Stamp
  let device: UInt64
  let inode: UInt64
  let size: Int64

  init(_ status: FileStatus) {
    stamp = Stamp(seconds: status.modifiedSeconds, nanoseconds: status.modifiedNanoseconds)
    device = status.device
    inode = status.inode
    size = status.size
  }
}

/// When a publication of ours was made, to the nanosecond: what its publisher knows of its version
/// before anybody can see it.
package struct Stamp: Hashable, Sendable {
  let seconds: Int64
  let nanoseconds: Int64

  /// Gives a file that is about to be published its version.
  static func put(on file: borrowing FileDescriptor) throws(Errno) -> Stamp {
    let (seconds, nanoseconds) = realTime()
    try file.setModified(seconds: seconds, nanoseconds: nanoseconds)
    return Stamp(seconds: seconds, nanoseconds: nanoseconds)
  }
}
