import AppGroup
public import FoundationEssentials
public import PropertyLists

/// A guaranteed message that came, to be acknowledged when it is handled.
///
/// One that is neither acknowledged, failed nor released is delivered again, marked, to the next
/// receiver. The first of these counts.
public struct PeerMessage: Sendable {
  private let entry: QueueEntry
  private let receiver: String

  init(_ entry: QueueEntry, for receiver: String) {
    self.entry = entry
    self.receiver = receiver
  }

  /// The transfer's id.
  public var id: String { MessageID(peer: receiver, entry: entry.id).description }
  /// Who sent it: the name it gave itself.
  public var sender: String { entry.sender }
  /// What was sent.
  public var value: PropertyListValue { entry.payload }
  /// When it was sent, by its sender's clock, which never goes back.
  public var sent: Date { entry.sent }
  /// Whether it was delivered before, and perhaps handled: by a process that ended or was replaced, or
  /// that gave it back.
  public var isRedelivery: Bool { entry.isRedelivery }
  /// How often it was delivered, this time included.
  public var deliveries: Int { entry.deliveries }

  /// The message as a value of a type.
  ///
  /// - Throws: `PeerError`: `unexpectedValue`.
  public func decode<Message: Decodable>(_ type: Message.Type) throws -> Message {
    try value.decoded(as: type, "read a message from \"\(sender)\"", from: sender)
  }

  /// Ends it as processed: it is never delivered again. Once is enough, and the first end counts.
  ///
  /// - Throws: `PeerError`: `replaced` when another process receives now, which has the message then;
  ///   or what the container refuses: it may be tried again.
  /// - Complexity: one unlink; for a message that was stored together with others, an open, a write
  ///   and a close until the last of them.
  public func acknowledge() throws {
    try betweenPeers("acknowledge a message from \"\(sender)\"", sender) {
      try entry.acknowledge()
    }
  }

  /// Ends it as failed: it is never delivered again, and its sender learns why.
  ///
  /// - Parameters:
  ///   - reason: for the sender.
  ///   - isKept: whether it is kept: `PeerSession.failures(for:)` lists it then, and `retry(failure:)`
  ///     sends it again.
  /// - Throws: as `acknowledge()`.
  public func fail(_ reason: String, isKept: Bool = false) throws {
    try betweenPeers("fail a message from \"\(sender)\"", sender) {
      try entry.fail(reason, isKept: isKept)
    }
  }

  /// Gives it back: it is delivered again when a pause is over, to the receiver of then. Meanwhile others
  /// are delivered, also those that its sender has sent after it.
  ///
  /// Where the receiver was given `maximumDeliveries`, and it was delivered that often, it ends as failed,
  /// and is kept.
  ///
  /// - Parameter pause: at least so long it is not delivered.
  /// - Throws: as `acknowledge()`.
  /// - Complexity: an open, a write and a close.
  public func release(after pause: Duration) throws {
    try betweenPeers("give back a message from \"\(sender)\"", sender) {
      try entry.release(after: pause)
    }
  }
}
