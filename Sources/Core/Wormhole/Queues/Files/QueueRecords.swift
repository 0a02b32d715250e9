public import WormholePropertyLists

/// An entry that its sender wanted to find again: its content and its status.
///
/// ```swift
/// let sender = try container.queue("jobs").sender("box office")
/// for receipt in try sender.outstanding() { print(receipt.payload, receipt.status) }
/// ```
public struct QueueReceipt: Sendable, Hashable {
  /// How long a receipt is kept.
  ///
  /// ```swift
  /// let sender = try container.queue("jobs").sender("box office")
  /// try await sender.enqueue(
  ///   ["film": "Metropolis"], keepsReceipt: true, receiptTerm: .dayAfterProcessing)
  /// ```
  public enum Term: Sendable, Hashable {
    /// Until its sender clears it.
    case untilForgotten
    /// Until its sender clears it, or a day after the entry was processed: the sender removes it
    /// with a later send, or a sweep does. The outcome of an entry that was not processed stays.
    case dayAfterProcessing
  }

  /// The id for asking about the entry, and for clearing it.
  public let id: QueueEntryID
  /// The content that was sent.
  public let payload: PropertyListValue
  /// The key that it was sent with.
  public let key: String?
  /// The status of the entry.
  public let status: QueueEntryStatus

  package init(id: QueueEntryID, payload: PropertyListValue, key: String?, status: QueueEntryStatus)
  {
    self.id = id
    self.payload = payload
    self.key = key
    self.status = status
  }
}
