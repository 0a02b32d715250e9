import Synchronization
import SystemCalls

/// Whether the directories that lie between a container and its values are on the disk: a durable
/// value is worth nothing in a directory that the power takes.
///
/// A directory's modification time changes with each name made in it, so one look tells whether
/// there is anything new since it was put on the disk last. A time is trusted only when it was over
/// a second old then: a kernel's clock for files ticks coarsely, and within one tick a name could be
/// made without being seen (as git's index does; "Racy git", git's technical documentation).
final class SynchronizedNames: Sendable {
  private let known = Mutex<[NameKind: FileStatus]>([:])

  /// Puts the directory with the names of one kind on the disk, and those above it up to the
  /// container itself.
  ///
  /// - Complexity: one look; two or three fsyncs when a name was made since the last call, or a second before.
  func synchronize(_ kind: NameKind, in container: borrowing FileDescriptor) throws(Errno) {
    let names = try FileDescriptor.openBeneath(
      kind.path, at: container.rawValue, [.readOnly, .directory])
    // Before the fsyncs, so that what is made during them is seen the next time.
    let status = try names.status()
    let now = realTime()
    if known.withLock({ $0[kind] == status }) { return }
    try names.synchronize()
    if kind.isOwn {
      try FileDescriptor.openBeneath(
        NameKind.own, at: container.rawValue, [.readOnly, .directory]
      ).synchronize()
    }
    try container.synchronize()
    guard status.modifiedSeconds < now.seconds - 1 else { return }
    known.withLock { $0[kind] = status }
  }
}
