/// A small message that the counterpart is guaranteed to get, in the order of sending, as soon as
/// it runs.
///
/// Requires at least `.backgroundOnly`.
///
/// ```swift
/// let message = GuaranteedMessage(identifier: "sold", content: ["seats": [7, 8]])
/// Communicator.shared.send(message) { result in print(result) }
/// ```
public struct GuaranteedMessage: Sendable {
  /// Receives the outcome of sending.
  public typealias Completion = @Sendable (Result<Void, any Error>) -> Void

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
}

extension GuaranteedMessage {
  var wire: SharedContent { payload.labelled(identifier) }

  init?(wire: Content) {
    guard let parts = Labelled(wire: wire) else { return nil }
    self.init(identifier: parts.identifier, content: parts.content)
  }
}

extension GuaranteedMessage: Observable {
  /// The observers of received guaranteed messages; up to 256 messages wait for the first observer.
  public static let observations = Observations<Self>(keeping: 256)
}

extension GuaranteedMessage: CustomStringConvertible {
  public var description: String { "GuaranteedMessage(\(identifier), \(content))" }
}
