public import FoundationEssentials
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

  /// - Returns: nil for a withdrawn entry, which no longer has a payload.
  package init?(_ id: QueueEntryID, _ entry: Batch.Entry, _ status: QueueEntryStatus) {
    guard let payload = entry.payload else { return nil }
    self.id = id
    self.payload = payload
    key = entry.key
    self.status = status
  }
}

/// The outcome of an entry that was not processed.
///
/// ```swift
/// let sender = try container.queue("jobs").sender("box office")
/// for outcome in try sender.outcomes() {
///   if case .failed(let reason) = outcome.status { print(outcome.id, reason) }
/// }
/// ```
public struct QueueOutcome: Sendable, Hashable {
  /// The entry's id.
  public let id: QueueEntryID
  /// How it ended.
  public let status: QueueEntryStatus

  package init(id: QueueEntryID, status: QueueEntryStatus) {
    self.id = id
    self.status = status
  }
}

/// A failed entry that its consumer has kept for inspection, to be sent again or cleared.
///
/// ```swift
/// let jobs = container.queue("jobs")
/// for failure in try jobs.failures() {
///   print(failure.payload, failure.reason)
///   let id = try jobs.retry(failure.id)       // or forgetFailure(_:)
///   print("sent again as", id?.description ?? "nothing: it was gone")
/// }
/// ```
public struct QueueFailure: Sendable, Hashable {
  /// The id of the entry; an entry that is sent again gets a new one.
  public let id: QueueEntryID
  /// The content that was sent.
  public let payload: PropertyListValue
  /// The reason for the failure.
  public let reason: String
  /// The time of the failure.
  public let date: Date

  package init(id: QueueEntryID, payload: PropertyListValue, reason: String, date: Date) {
    self.id = id
    self.payload = payload
    self.reason = reason
    self.date = date
  }
}
