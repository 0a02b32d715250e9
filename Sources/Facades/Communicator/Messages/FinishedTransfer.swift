/// The outcome of a transfer that this side sent, in this process or an earlier one.
///
/// A completion ends with its process, but a guaranteed message does not. When the app is started
/// again, it learns the outcome here. The original has no equivalent.
///
/// ```swift
/// FinishedTransfer.observe { transfer in
///   if case .failure(let error) = transfer.result { print(transfer.kind, transfer.identifier, error) }
/// }
/// ```
public struct FinishedTransfer: Sendable {
  /// The kind of a transfer.
  ///
  /// ```swift
  /// FinishedTransfer.observe { transfer in if transfer.kind == .blob { print(transfer.identifier) } }
  /// ```
  public enum Kind: Sendable {
    /// A `GuaranteedMessage`.
    case guaranteedMessage
    /// A `Blob`.
    case blob
    /// A `ComplicationInfo`.
    case complicationInfo
  }

  /// The kind of the transfer.
  public let kind: Kind
  /// The identifier of the message or blob; empty for complication info.
  public let identifier: String
  /// Success if the counterpart's process has received the transfer, otherwise the reason why it
  /// never will.
  public let result: Result<Void, any Error>
  let payload: SharedContent

  /// The content of the message or the complication info; for a blob, its metadata.
  public var content: Content { payload.content }
}

extension FinishedTransfer: Observable {
  /// The observers of finished transfers; up to 256 transfers wait for the first observer.
  public static let observations = Observations<Self>(keeping: 256)
}
