public import FoundationEssentials

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
    self.batch = batch
    self.index = index
  }

  /// Parses a `description`.
  ///
  /// - Returns: nil for any other text.
  public init?(_ description: String) {
    guard let slash = description.lastIndex(of: "/"),
      let batch = EntryFile(description[..<slash]),
      let index = Int(description[description.index(after: slash)...]),
      (0..<batch.count).contains(index)
    else { return nil }
    self.init(batch: batch, index: index)
  }

  /// The id as text that can be stored.
  public var description: String { "\(batch.text)/\(index)" }

  /// The sender's name.
  public var sender: String { batch.senderName }

  /// Its priority.
  public var priority: EntryPriority { batch.priority }

  /// The time of sending, by its sender's clock, which never goes back.
  public var sent: Date { Date(timeIntervalSince1970: Double(batch.order) / 1e9) }

  /// The time from which it may be delivered, if it was delayed.
  public var due: Date? { batch.due.map { Date(timeIntervalSince1970: Double($0) / 1e9) } }

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
