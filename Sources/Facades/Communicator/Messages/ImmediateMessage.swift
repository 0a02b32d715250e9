/// A small message that the counterpart gets now or not at all.
///
/// Requires `.immediatelyReachable`. A message from a watch starts the phone process if it has
/// registered for that.
///
/// ```swift
/// ImmediateMessage.observe { message in print(message.content) }
/// Communicator.shared.send(ImmediateMessage(identifier: "lights", content: ["on": false])) { error in
///   print(error)
/// }
/// ```
public struct ImmediateMessage: Sendable {
  /// Receives the reason why a message was not delivered.
  public typealias ErrorHandler = @Sendable (any Error) -> Void

  /// The subject of the message: any string that both sides know.
  public let identifier: String
  let payload: SharedContent

  /// The content; empty if a property list cannot hold it: then sending it fails with
  /// `WCError.payloadUnsupportedTypes`.
  public var content: Content { payload.content }

  /// Creates a message with a subject and content.
  public init(identifier: String, content: Content = [:]) {
    self.identifier = identifier
    payload = SharedContent(content)
  }

  /// Creates a message, as the original's README spells it.
  public init(_ identifier: String, content: Content = [:]) {
    self.init(identifier: identifier, content: content)
  }
}

extension ImmediateMessage {
  var wire: SharedContent { payload.labelled(identifier) }

  init?(wire: Content) {
    guard let parts = Labelled(wire: wire) else { return nil }
    self.init(identifier: parts.identifier, content: parts.content)
  }
}

extension ImmediateMessage: Observable {
  /// The observers of received immediate messages.
  public static let observations = Observations<Self>()
}

extension ImmediateMessage: CustomStringConvertible {
  public var description: String { "ImmediateMessage(\(identifier), \(content))" }
}
