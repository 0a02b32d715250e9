public import Wormhole
public import WormholePropertyLists

/// A changed key of a suite.
///
/// ```swift
/// for await change in try GroupDefaults(in: container).changes() where !change.isOwn {
///   print(change.key, change.oldValue ?? "", change.newValue ?? "", change.publisher?.program ?? "")
/// }
/// ```
public struct DefaultsChange: Sendable, Hashable {
  /// The key; dots and "@" are ordinary characters.
  public let key: String
  /// The last reported value of the key; nil if it had none.
  public let oldValue: PropertyListValue?
  /// The stored value; nil if it was removed.
  public let newValue: PropertyListValue?
  /// Whether the observed object wrote the value itself: false for other processes, and for other
  /// objects of this process.
  public let isOwn: Bool
  /// The process that made the change, and when it last changed the suite; nil if it is unknown,
  /// because a program that does not use this package wrote the file, or several processes changed
  /// the suite between two looks, which are reported as one.
  public let publisher: Publisher?
}
