public import PropertyLists

/// A key of a suite that has another value than before.
public struct DefaultsChange: Sendable, Hashable {
  /// The key, whatever is in it: dots and "@" are ordinary characters.
  public let key: String
  /// What was told of the key before; nil when it had no value.
  public let oldValue: PropertyListValue?
  /// What is stored now; nil when it was removed.
  public let newValue: PropertyListValue?
  /// Whether the object that is observed wrote it itself: false for other processes, and for other
  /// objects of this process.
  public let isOwn: Bool
}
