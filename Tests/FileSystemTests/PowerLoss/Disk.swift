import WormholeSystem
import WormholeTestSupport

/// A file system on its own disk, whose power can be cut.
///
/// Cutting is `FS_IOC_SHUTDOWN` with `FS_SHUTDOWN_FLAGS_NOLOGFLUSH` (linux/fs.h, xfs_ioctl(2)):
/// from then on nothing reaches the disk, not even the journal's last transactions. It does not
/// simulate a disk that loses its own cache. The file systems write back late here, so that data
/// without fsync does not reach the disk by luck.
final class Disk: Sendable {
  enum Kind: String, CaseIterable, Sendable, CustomStringConvertible {
    case ext4, xfs
    case unjournalled = "ext4 without a journal"

    var description: String { rawValue }

    fileprivate var type: String { self == .xfs ? "xfs" : "ext4" }

    fileprivate var make: String {
      switch self {
      case .ext4: "truncate -s 16M image && mkfs.ext4 -q -F -J size=4 image"
      // The smallest size for mkfs.xfs is 300 MiB; hardly any of it is ever written.
      case .unjournalled: "truncate -s 16M image && mkfs.ext4 -q -F -O ^has_journal image"
      case .xfs: "truncate -s 320M image && mkfs.xfs -q image"
      }
    }

    fileprivate var options: String { self == .ext4 ? "loop,commit=600" : "loop" }
  }

  private static let cut = """
    perl -e 'open(my $d, "<", $ARGV[0]) or die "open: $!"; my $flag = pack("L", 2); \
    ioctl($d, 0x8004587d, $flag) or die "FS_IOC_SHUTDOWN: $!"'
    """

  let kind: Kind
  private let mounts: MountNamespace

  init(_ kind: Kind) throws {
    self.kind = kind
    mounts = try MountNamespace()
    // The image lies in memory, because the test concerns the writes to it and their time. It lies
    // beside the disk, not around it, so that neither keeps the other from being unmounted.
    try mounts.run(
      "mkdir memory disk && mount -t tmpfs -o size=512m tmpfs memory && cd memory && \(kind.make)")
    try mounts.run(mountCommand)
  }

  /// Creates an empty directory that is already on the disk.
  func makeContainer() throws -> String {
    let name = "container-\(UInt64.random(in: .min ... .max))"
    try mounts.run("mkdir -m 700 disk/\(name) && sync -f disk")
    return mounts.inside + "/disk/" + name
  }

  private var mountCommand: String { "mount -t \(kind.type) -o \(kind.options) memory/image disk" }

  /// Cuts the power, while other processes may be writing.
  ///
  /// Without a journal the file system writes all that it has when it is unmounted, so what is on the
  /// disk now is kept aside, as is the only thing that a start of the machine would find. A copy to
  /// which the disk is still equal is of one moment.
  func cutPower() throws {
    let copy = """
      for attempt in 1 2 3 4 5 6 7 8 9; do \
      cp memory/image memory/cut; cmp -s memory/image memory/cut && break; \
      done; [ $attempt -lt 9 ]
      """
    try mounts.run(kind == .unjournalled ? copy : "\(Self.cut) disk")
  }

  /// Mounts the disk again, which replays its journal. No process may have a file of it open any more.
  ///
  /// - Parameter isNewStart: Whether the machine has started again, too: then the kept versions are
  ///   marked as those of an earlier start.
  func restart(isNewStart: Bool = true) throws {
    // A process that another test is just starting has copies of this process's descriptors until
    // its exec.
    try eventually("the disk is not in use any more") {
      do {
        try mounts.run("umount disk")
        return true
      } catch let error as NamespaceShell.Failure where error.description.contains("busy") {
        return false
      }
    }
    if kind == .unjournalled {
      // As at the start of the machine; it ends with 1 when it has mended something (e2fsck(8)).
      try mounts.run(
        "mv memory/cut memory/image; e2fsck -fy memory/image >memory/log || [ $? = 1 ]")
    }
    try mounts.run(mountCommand)
    guard isNewStart else { return }
    try mounts.run(
      """
      find disk -name 'kept-*' ! -name kept-earlier | while read -r kept; do \
      mv "$kept" "$(dirname "$kept")/kept-earlier"; done
      """)
  }

  /// The journalling ones that this machine can create and cut; for each other one the reason is
  /// printed.
  static let usable = [Kind.ext4, .xfs].filter(isUsable)
  static let usableWithoutJournal = [Kind.unjournalled].filter(isUsable)

  private static func isUsable(_ kind: Kind) -> Bool {
    do {
      let disk = try Disk(kind)
      try disk.cutPower()
      try disk.restart()
      return true
    } catch {
      print("skipped: power loss on \(kind): \(error)")
      return false
    }
  }
}
