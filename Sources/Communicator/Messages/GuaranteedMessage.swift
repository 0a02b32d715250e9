/// A small message that the counterpart gets for certain, and in the order in which they were sent, as
/// soon as it runs.
///
/// Needs at least `.backgroundOnly`.
public struct GuaranteedMessage: Sendable {
  /// Hears how the sending has ended.
  public typealias Completion = @Sendable (Result<Void, any Error>) -> Void

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
}

extension GuaranteedMessage {
  var wire: Payload { payload.labelled(identifier) }

  init?(wire: Content) {
    guard let parts = Labelled(wire: wire) else { return nil }
    self.init(identifier: parts.identifier, content: parts.content)
  }
}

extension GuaranteedMessage: Observable {
  /// Who observes guaranteed messages that come; up to 256 wait for the first who does.
  public static let observations = Observations<Self>(keeping: 256)
}

extension GuaranteedMessage: CustomStringConvertible {
  public var description: String { "GuaranteedMessage(\(identifier), \(content))" }
}
