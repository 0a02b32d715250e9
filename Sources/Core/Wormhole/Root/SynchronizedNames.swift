import Synchronization
package import WormholeSystem

/// Knows whether the directories between a container and its values are on the disk. A durable
/// value is lost with a directory that a power failure removes.
///
/// A directory's modification time changes with each name created in it, so one look shows whether
/// anything is new since it was last flushed. A time is trusted only if it was at least two seconds
/// old then: a name created within the same tick of the clock could go unnoticed (as in git's
/// index; "Racy git", git's technical documentation).
package final class SynchronizedNames: Sendable {
  private let known = Mutex<[NameKind: FileStatus]>([:])

  /// Flushes the directory with the names of one kind, and its parents up to the container, to the
  /// disk.
  ///
  /// - Complexity: One look; two or three fsyncs if a name was created since the last call, or in
  ///   the two seconds before it.
  package func synchronize(_ kind: NameKind, in container: borrowing FileDescriptor) throws(Errno) {
    let names = try FileDescriptor.openBeneath(
      kind.path, at: container.rawValue, [.readOnly, .directory])
    // Before the fsyncs, so that the next look notices names that are created during them.
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
    guard status.isTrusted(at: now) else { return }
    known.withLock { $0[kind] = status }
  }
}
