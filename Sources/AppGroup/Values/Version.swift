import Synchronization
package import SystemCalls

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
    stamp = Stamp(status)
    device = status.device
    inode = status.inode
    size = status.size
  }

  /// The version as text, for whoever remembers over a restart what it has seen. Without the device,
  /// whose number may be another after the machine's.
  package var text: String { "\(stamp.seconds).\(stamp.nanoseconds)-\(inode)-\(size)" }
}

/// When a publication of ours was made, to the nanosecond: what its publisher knows of its version
/// before anybody can see it.
package struct Stamp: Hashable, Sendable {
  let seconds: Int64
  let nanoseconds: Int64

  /// How many publications of this process on a file system with coarse times have had a time.
  private static let count = Atomic(UInt32.random(in: .min ... .max))

  /// Gives a file that is about to be published its version.
  ///
  /// Some file systems keep seconds only (ext4 with inodes of 128 bytes), or every other (FAT).
  /// There an inode that comes back within one would be taken for its predecessor, so that each
  /// publication has another second there, of the last day.
  ///
  /// - Parameter root: remembers what the file system was seen to keep, so that it is looked at once.
  static func put(
    on file: borrowing FileDescriptor, in root: ContainerRoot
  ) throws(Errno) -> Stamp {
    let (seconds, nanoseconds) = realTime()
    try file.setModified(seconds: seconds, nanoseconds: nanoseconds)
    if root.keepsNanoseconds.load(ordering: .relaxed) {
      return Stamp(seconds: seconds, nanoseconds: nanoseconds)
    }
    let kept = Stamp(try file.status())
    if kept.nanoseconds == nanoseconds, nanoseconds % 10 != 0 {
      // A time that no coarser clock has.
      root.keepsNanoseconds.store(true, ordering: .relaxed)
    }
    // Microseconds, or a little less, will do.
    guard kept.nanoseconds / 1_000 != nanoseconds / 1_000 else { return kept }
    let number = count.wrappingAdd(1, ordering: .relaxed).newValue
    try file.setModified(seconds: seconds - Int64(number % 43_200) * 2, nanoseconds: 0)
    return Stamp(try file.status())
  }

  init(seconds: Int64, nanoseconds: Int64) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  package init(_ status: FileStatus) {
    seconds = status.modifiedSeconds
    nanoseconds = status.modifiedNanoseconds
  }
}
