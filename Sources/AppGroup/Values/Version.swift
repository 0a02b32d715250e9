import SystemCalls

/// Which publication of a value a file is: two publications never have the same version.
///
/// The inode alone comes back quickly on ext4, and the kernel's time stamps are as coarse as its
/// timer, so every publication sets its own modification time to the nanosecond.
public struct Version: Hashable, Sendable {
  let device: UInt64
  let inode: UInt64
  let seconds: Int64
  let nanoseconds: Int64
  let size: Int64

  init(_ status: FileStatus) {
    device = status.device
    inode = status.inode
    seconds = status.modifiedSeconds
    nanoseconds = status.modifiedNanoseconds
    size = status.size
  }

  /// Gives a file that is about to be published its version.
  static func stamp(_ file: borrowing FileDescriptor) throws(Errno) -> Version {
    let (seconds, nanoseconds) = realTime()
    try file.setModified(seconds: seconds, nanoseconds: nanoseconds)
    return Version(try file.status())
  }
}

/// What a write survives.
public enum Durability: Sendable, Hashable {
  /// Everything but the loss of power: then the value is old, new, or reported as damaged.
  case standard
  /// The loss of power, too: when the call returns, the new value is on the disk.
  ///
  /// Costs three fsyncs: about 240 µs on an SSD, milliseconds on a disk.
  case durable
}
