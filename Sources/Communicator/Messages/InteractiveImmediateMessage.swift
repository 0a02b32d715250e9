/// A small message that the counterpart gets now, and replies to.
///
/// Needs `.immediatelyReachable`. Whoever receives it calls `reply` once; if all let go of the message
/// without that, its sender gets an error at once.
public struct InteractiveImmediateMessage: Sendable {
  /// Takes a reply.
  public typealias Reply = @Sendable (ImmediateMessage) -> Void
  /// Hears why a message was not delivered, or not replied to.
  public typealias ErrorHandler = ImmediateMessage.ErrorHandler

  /// Says what the message is about; any string, known to both sides.
  public let identifier: String
  /// On the side that sends, hears the reply; on the side that receives, sends it. The first call
  /// counts.
  public let reply: Reply
  let payload: Payload

  /// What the message says; empty if it was made of what no property list can hold.
  public var content: Content { payload.content }

  /// Makes a message.
  ///
  /// - Parameters:
  ///   - identifier: says what it is about.
  ///   - content: what a property list can hold; sending anything else fails with
  ///     `WCError.payloadUnsupportedTypes`.
  ///   - reply: hears the reply on the session's queue; without it the reply is awaited and dropped.
  @preconcurrency
  public init(
    identifier: String, content: Content = [:], reply: @escaping Reply = { _ in }
  ) {
    self.identifier = identifier
    self.reply = reply
    payload = Payload(content)
  }
}

extension InteractiveImmediateMessage {
  var wire: Payload { payload.labelled(identifier) }

  init?(wire: Content, reply: @escaping Reply) {
    guard let parts = Labelled(wire: wire) else { return nil }
    self.init(identifier: parts.identifier, content: parts.content, reply: reply)
  }
}

extension InteractiveImmediateMessage: Observable {
  /// Who observes interactive messages that come.
  public static let observations = Observations<Self>()
}

extension InteractiveImmediateMessage: CustomStringConvertible {
  public var description: String { "InteractiveImmediateMessage(\(identifier), \(content))" }
}
