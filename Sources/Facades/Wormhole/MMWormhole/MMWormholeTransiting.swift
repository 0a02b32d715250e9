/// A messenger that stores and fetches messages for an `MMWormhole`; replace it to store them
/// elsewhere.
///
/// The names are those of MMWormhole 2.0's protocol as Swift imports it.
public protocol MMWormholeTransiting: AnyObject, Sendable {
  /// Stores a message.
  ///
  /// - Parameters:
  ///   - messageObject: The message; nil removes the stored one.
  ///   - identifier: The identifier of the message.
  /// - Returns: Whether listeners are to be notified.
  func writeMessageObject(_ messageObject: Any?, forIdentifier identifier: String?) -> Bool

  /// Returns the stored message of an identifier.
  ///
  /// - Returns: nil if there is none.
  func messageObject(forIdentifier identifier: String?) -> Any?

  /// Removes the message of an identifier.
  func deleteContent(forIdentifier identifier: String?)

  /// Removes all messages.
  func deleteContentForAllMessages()
}

/// The kind of messenger that an `MMWormhole` begins with.
///
/// The original's three session kinds are missing, because they need a watch session, which is on
/// the same layer as this module. To use one, set `wormholeMessenger` to a messenger of your own.
public enum MMWormholeTransitingType: Int, Sendable {
  /// Files in the group's container.
  case file = 0
  /// The same as `file`, because every file of a container is coordinated.
  case coordinatedFile = 1
}
