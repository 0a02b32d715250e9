/// What a write survives.
public enum Durability: Sendable, Hashable {
  /// Everything but the loss of power: then the value is old, new, or reported as damaged.
  case standard
  /// The loss of power, too: when the call returns, the new value is on the disk.
  ///
  /// Costs three fsyncs (five where identifiers were new lately): about 240 µs on an SSD, milliseconds on a disk.
  case durable
}
