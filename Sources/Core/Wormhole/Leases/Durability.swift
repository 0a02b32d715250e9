/// The failures that a write survives.
///
/// ```swift
/// // Survives a loss of power that comes after the call has returned.
/// try await container.value("invoice").replace(with: ["number": 4711], durability: .durable)
/// ```
public enum Durability: Sendable, Hashable {
  /// Survives everything except the last seconds before a loss of power. After that loss the value
  /// is new or old, never damaged, and an entry of a queue is present or gone.
  ///
  /// A process flushes its changes to the disk a second later. While it runs, and the disk answers
  /// within a second, the value that is found was replaced at most five seconds before the loss. If
  /// the process has ended by then, the file system flushes them in its own time (ext4 within 5
  /// seconds, xfs within 30); the `wormhole` command flushes before it ends where that takes longer
  /// than 5 seconds. If it published continuously and was killed, the value may be one from up to a
  /// second before its last, until the kernel has written the last one (30 seconds).
  ///
  /// One publication per second waits until its content is written, and so does each isolated
  /// publication and each of more than 4 KiB. The others cost no more than without this guarantee.
  case standard
  /// Also survives a loss of power: when the call returns, the new value is on the disk.
  ///
  /// Costs one fsync on ext4 and xfs, three elsewhere (five if identifiers were created recently).
  /// An fsync takes about 100 µs on an SSD, and milliseconds on a hard disk.
  case durable
}
