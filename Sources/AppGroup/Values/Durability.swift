/// What a write survives.
public enum Durability: Sendable, Hashable {
  /// Everything, but for the last seconds before a loss of power: then the value is new or old, never
  /// damaged, and an entry of a queue is there or gone.
  ///
  /// A process puts what it has changed on the disk a second later. If it has ended by then, as a
  /// command does, the file system does that in its own time (ext4 within 5 seconds, xfs within 30);
  /// and if it was killed while it published all the time, the value may be one that was published up
  /// to a second before its last, until the kernel has written that (30 seconds).
  ///
  /// One publication a second waits until its content is written, and so does each that comes alone,
  /// and each of more than 4 KiB; those between cost no more than without this.
  case standard
  /// The loss of power, too: when the call returns, the new value is on the disk.
  ///
  /// Costs three fsyncs (five where identifiers were new lately): about 240 µs on an SSD, milliseconds on a disk.
  case durable
}
