/// A small message that the counterpart gets now, or not at all.
///
/// Needs `.immediatelyReachable`. Sent from a watch, it starts a phone process that registered how.
public struct ImmediateMessage: Sendable {
  /// Hears why a message was not delivered.
  public typealias ErrorHandler = @Sendable (any Error) -> Void

  /// Says what the message is about; any string, known to both sides.
  public let identifier: String
  let payload: Payload

  /// What the message says; empty if it was made of what no property list can hold.
  public var content: Content { payload.content }

  /// Makes a message.
  ///
  /// - Parameters:
  ///   - identifier: says what it is about.
  ///   - content: what a property list can hold; sending anything else fails with
  ///     `WCError.payloadUnsupportedTypes`.
  public init(identifier: String, content: Content = [:]) {
    self.identifier = identifier
    payload = Payload(content)
  }

  /// Makes a message, as the original's README spells it.
  public init(_ identifier: String, content: Content = [:]) {
    self.init(identifier: identifier, content: content)
  }
}

extension ImmediateMessage {
  var wire: Payload { payload.labelled(identifier) }

  init?(wire: Content) {
    guard let parts = Labelled(wire: wire) else { return nil }
    self.init(identifier: parts.identifier, content: parts.content)
  }
}

extension ImmediateMessage: Observable {
  /// Who observes immediate messages that come.
  public static let observations = Observations<Self>()
}

extension ImmediateMessage: CustomStringConvertible {
  public var description: String { "ImmediateMessage(\(identifier), \(content))" }
}
