/// How something that this side sent has ended, whether this process sent it or one before it.
///
/// A completion ends with its process, and a guaranteed message does not: when the app is started
/// again, this is where it hears what became of it. The original has nothing of the kind.
public struct FinishedTransfer: Sendable {
  /// What was sent.
  public enum Kind: Sendable {
    /// A `GuaranteedMessage`.
    case guaranteedMessage
    /// A `Blob`.
    case blob
    /// A `ComplicationInfo`.
    case complicationInfo
  }

  /// What was sent.
  public let kind: Kind
  /// The identifier of the message or blob; empty for complication info.
  public let identifier: String
  /// Whether the counterpart has handled it, or why it never will.
  public let result: Result<Void, any Error>
  let payload: Payload

  /// What the message or the complication info says; of a blob, its metadata.
  public var content: Content { payload.content }

  init(_ kind: Kind, _ identifier: String, _ payload: Payload, _ result: Result<Void, any Error>) {
    self.kind = kind
    self.identifier = identifier
    self.payload = payload
    self.result = result
  }
}

extension FinishedTransfer: Observable {
  /// Who observes transfers that end; up to 256 wait for the first who does.
  public static let observations = Observations<Self>(keeping: 256)
}
