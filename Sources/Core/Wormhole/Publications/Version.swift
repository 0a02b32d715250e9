import Synchronization
package import WormholeSystem

/// The identity of a publication: two publications of a value never have the same version.
///
/// On ext4 an inode is reused quickly, and the kernel's time stamps are as coarse as its timer. So
/// every publication of this package sets its own modification time to the nanosecond. The other
/// fields distinguish the writes of foreign programs.
///
/// ```swift
/// let seats = container.value("seats")
/// let before = try seats.version()
/// let isMine = try await seats.compareAndSet(before, [7, 8, 9])   // only if nobody wrote since
/// ```
public struct Version: Hashable, Sendable {
  package let stamp: Stamp
  let device: UInt64
  let inode: UInt64
  let size: Int64

  package init(_ status: FileStatus) {
    stamp = Stamp(status)
    device = status.device
    inode = status.inode
    size = status.size
  }

  /// The version of a key on etcd.
  package init(stamp: Stamp, revision: Int64) {
    self.stamp = stamp
    device = 0
    inode = UInt64(revision)
    size = 0
  }

  /// The revision of a key on etcd.
  package var revision: UInt64 { inode }

  /// The version as text, for programs that remember it across a restart. It does not contain the
  /// device, whose number may change with a restart of the machine.
  package var text: String { "\(stamp.seconds).\(stamp.nanoseconds)-\(inode)-\(size)" }
}

extension Version: Encodable {
  /// Encodes the text that `wormhole send --if-version` takes.
  public func encode(to encoder: any Encoder) throws { try text.encode(to: encoder) }
}

/// The time of a publication, to the nanosecond: the part of the version that the publisher knows
/// before it becomes visible.
package struct Stamp: Hashable, Sendable {
  package let seconds: Int64
  package let nanoseconds: Int64

  /// The number of publications of this process with a time on a file system with coarse times.
  private static let count = Atomic(UInt32.random(in: .min ... .max))

  /// Gives a file that is about to be published its version.
  ///
  /// Some file systems keep only seconds (ext4 with inodes of 128 bytes) or every other second
  /// (FAT). There, an inode that is reused within one second would be taken for its predecessor. So
  /// each publication gets a different second of the last day.
  ///
  /// - Parameter keepsNanoseconds: Remembers the precision of the container's file system, so that it is
  ///   determined only once.
  static func put(
    on file: borrowing FileDescriptor, _ keepsNanoseconds: borrowing Atomic<Bool>
  ) throws(Errno) -> Stamp {
    let now = realTime()
    let (seconds, nanoseconds) = (now.seconds, now.nanoseconds)
    try file.setModified(seconds: seconds, nanoseconds: nanoseconds)
    if keepsNanoseconds.load(ordering: .relaxed) {
      return Stamp(seconds: seconds, nanoseconds: nanoseconds)
    }
    let kept = Stamp(try file.status())
    if kept.nanoseconds == nanoseconds, nanoseconds % 10 != 0 {
      // A time that no coarser clock can have.
      keepsNanoseconds.store(true, ordering: .relaxed)
    }
    // Microseconds, or a little less, are enough.
    guard kept.nanoseconds / 1_000 != nanoseconds / 1_000 else { return kept }
    let number = count.wrappingAdd(1, ordering: .relaxed).newValue
    let chosen = now.earlier(bySeconds: Int64(number % 43_200) * 2)
    try file.setModified(seconds: chosen.seconds, nanoseconds: 0)
    return Stamp(try file.status())
  }

  package init(seconds: Int64, nanoseconds: Int64) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  package init(_ status: FileStatus) {
    seconds = status.modifiedSeconds
    nanoseconds = status.modifiedNanoseconds
  }
}
