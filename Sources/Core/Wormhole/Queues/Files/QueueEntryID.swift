public import FoundationEssentials
public import WormholePropertyLists

/// The identity of an entry, by which its sender asks about it; it stays the same across restarts.
///
/// ```swift
/// let sender = try container.queue("jobs").sender("box office")
/// let text = try await sender.enqueue(["film": "Metropolis"], keepsReceipt: true).description
/// // After a restart:
/// if let id = QueueEntryID(text) { print(try sender.status(of: id)) }
/// ```
public struct QueueEntryID: Sendable, Hashable, CustomStringConvertible {
  package let batch: EntryFile
  package let index: Int

  package init(batch: EntryFile, index: Int) {
    self.batch = batch.whole
    self.index = index
  }

  /// Parses a `description`.
  ///
  /// - Returns: nil for any other text.
  public init?(_ description: String) {
    guard let slash = description.lastIndex(of: "/"),
      let batch = EntryFile(description[..<slash]), batch.part == nil,
      let index = Int(description[description.index(after: slash)...]),
      (0..<batch.count).contains(index)
    else { return nil }
    self.init(batch: batch, index: index)
  }

  /// The id as text that can be stored.
  public var description: String { "\(batch.text)/\(index)" }

  /// The sender's name.
  public var sender: String { batch.senderName }

  /// The time of sending, by its sender's clock, which never goes back.
  public var sent: Date { Date(timeIntervalSince1970: Double(batch.order) / 1e9) }

  /// The time from which it may be delivered, if it was delayed.
  public var due: Date? { batch.due.map { Date(timeIntervalSince1970: Double($0) / 1e9) } }

  /// The files, one of which stands for it.
  package var files: [EntryFile] { [batch] + (batch.count > 1 ? [batch.of(index)] : []) }

  /// Whether it was sent before another entry.
  package func isBefore(_ other: QueueEntryID) -> Bool {
    (batch, index) < (other.batch, other.index)
  }
}

/// The state of an entry.
///
/// ```swift
/// let sender = try container.queue("jobs").sender("box office")
/// let id = try await sender.enqueue(["film": "Metropolis"], expires: .seconds(60), keepsReceipt: true)
/// switch try await sender.finalStatus(of: id) {
/// case .processed: print("printed")
/// case .expired: print("nobody came in a minute")
/// case .failed(let reason): print(reason)
/// case let other: print(other)
/// }
/// ```
public enum QueueEntryStatus: Sendable, Hashable {
  /// It waits.
  case stored
  /// A consumer has it, had it and died, or has given it back for a later delivery.
  case taken
  /// It was acknowledged.
  case processed
  /// Its sender cancelled it before it was delivered.
  case cancelled
  /// A newer entry of its sender with the same key superseded it before it was delivered.
  case superseded
  /// It expired before it was delivered.
  case expired
  /// The consumer reported a failure, or it could not be read.
  case failed(reason: String)

  package var reason: String? { if case .failed(let reason) = self { reason } else { nil } }

  /// Whether it is final.
  public var isEnd: Bool { self != .stored && self != .taken }
}

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
  public package(set) var status: QueueEntryStatus
  private let isPastExpiry: Bool

  /// Whether it waits, but is never delivered: the next consumer ends it as expired.
  package var hasExpired: Bool { status == .stored && isPastExpiry }

  /// - Returns: nil for a withdrawn entry, which no longer has a payload.
  package init?(_ id: QueueEntryID, _ entry: Batch.Entry, _ status: QueueEntryStatus) {
    guard let payload = entry.payload else { return nil }
    self.id = id
    self.payload = payload
    key = entry.key
    self.status = status
    isPastExpiry = entry.expiry?.hasPassed == true
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
