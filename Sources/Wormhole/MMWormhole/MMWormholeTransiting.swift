/// How an `MMWormhole` stores and fetches messages; replace it to store them elsewhere.
///
/// The names are those of MMWormhole 2.0's protocol as Swift imports it.
public protocol MMWormholeTransiting: AnyObject, Sendable {
  /// Stores a message.
  ///
  /// - Parameters:
  ///   - messageObject: the message; nil means that there is none any more.
  ///   - identifier: which message it is.
  /// - Returns: whether listeners are to be notified.
  func writeMessageObject(_ messageObject: Any?, forIdentifier identifier: String?) -> Bool

  /// Fetches the message that is stored now.
  ///
  /// - Returns: nil if there is none.
  func messageObject(forIdentifier identifier: String?) -> Any?

  /// Removes the message of an identifier.
  func deleteContent(forIdentifier identifier: String?)

  /// Removes all messages.
  func deleteContentForAllMessages()
}

/// Which messenger an `MMWormhole` begins with.
///
/// The original's three session kinds are none of ours: they need a watch session, and a layer on the
/// same level as this one; give `wormholeMessenger` one that uses it.
public enum MMWormholeTransitingType: Int, Sendable {
  /// Files in the group's container.
  case file = 0
  /// The same: every file of a container is coordinated.
  case coordinatedFile = 1
}
