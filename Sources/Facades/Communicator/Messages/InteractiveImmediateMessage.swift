/// A small message that the counterpart gets now and replies to.
///
/// Requires `.immediatelyReachable`. The receiver calls `reply` once. If the message is released
/// without a reply, its sender gets an error at once.
///
/// ```swift
/// InteractiveImmediateMessage.observe { message in
///   message.reply(ImmediateMessage(identifier: "free", content: ["seats": [9, 10]]))
/// }
/// let question = InteractiveImmediateMessage(identifier: "free?") { reply in print(reply.content) }
/// Communicator.shared.send(question) { error in print(error) }
/// ```
public struct InteractiveImmediateMessage: Sendable {
  /// Takes a reply.
  public typealias Reply = @Sendable (ImmediateMessage) -> Void
  /// Receives the reason why a message was not delivered or not replied to.
  public typealias ErrorHandler = ImmediateMessage.ErrorHandler

  /// The subject of the message: any string that both sides know.
  public let identifier: String
  /// On the sending side, receives the reply; on the receiving side, sends it. Only the first call
  /// has an effect.
  public let reply: Reply
  let payload: SharedContent

  /// The content; empty if a property list cannot hold it: then sending it fails with
  /// `WCError.payloadUnsupportedTypes`.
  public var content: Content { payload.content }

  /// Creates a message.
  ///
  /// - Parameters:
  ///   - identifier: The subject of the message.
  ///   - content: Content that a property list can hold.
  ///   - reply: Receives the reply on the session's queue; without it the reply is awaited and
  ///     dropped.
  @preconcurrency
  public init(
    identifier: String, content: Content = [:], reply: @escaping Reply = { _ in }
  ) {
    self.identifier = identifier
    self.reply = reply
    payload = SharedContent(content)
  }
}

extension InteractiveImmediateMessage {
  var wire: SharedContent { payload.labelled(identifier) }

  init?(wire: Content, reply: @escaping Reply) {
    guard let parts = Labelled(wire: wire) else { return nil }
    self.init(identifier: parts.identifier, content: parts.content, reply: reply)
  }
}

extension InteractiveImmediateMessage: Observable {
  /// The observers of received interactive messages.
  public static let observations = Observations<Self>()
}

extension InteractiveImmediateMessage: CustomStringConvertible {
  public var description: String { "InteractiveImmediateMessage(\(identifier), \(content))" }
}
