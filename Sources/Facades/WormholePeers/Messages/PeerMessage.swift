public import FoundationEssentials
import Wormhole
public import WormholePropertyLists

/// A guaranteed message, to be acknowledged when it is handled; see `PeerDelivery`.
///
/// ```swift
/// let receiver = try await PeerSession("till", in: container).receiveMessages()
/// if let message = try await receiver.next(until: .now + .seconds(2)) {
///   print(message.sender, message.value)
///   try message.acknowledge()
/// }
/// ```
public struct PeerMessage: PeerDelivery {
  private let entry: QueueEntry
  private let receiver: String

  init(_ entry: QueueEntry, for receiver: String) {
    self.entry = entry
    self.receiver = receiver
  }

  /// The transfer's id.
  public var id: String { MessageID(peer: receiver, entry: entry.id).description }
  /// The sender, by the name that it gave itself.
  public var sender: String { entry.sender }
  /// The value that was sent.
  public var value: PropertyListValue { entry.payload }
  /// When it was sent, by its sender's clock, which never goes back.
  public var sent: Date { entry.sent }
  /// Whether it was delivered before, and perhaps handled.
  public var isRedelivery: Bool { entry.isRedelivery }
  /// How often it was delivered, this time included.
  public var deliveries: Int { entry.deliveries }

  /// Decodes the message as a type of the program.
  ///
  /// - Throws: `PeerError`: `unexpectedValue`.
  public func decode<Message: Decodable>(_ type: Message.Type) throws -> Message {
    try value.decoded(as: type, action("read"), from: sender)
  }

  /// Ends it as processed; see `PeerDelivery`.
  ///
  /// - Complexity: one unlink; for a message that was stored together with others, until the last
  ///   of them, an open, a write and a close.
  public func acknowledge() throws {
    try betweenPeers(action("acknowledge"), sender) { try entry.acknowledge() }
  }

  /// Ends it as failed; see `PeerDelivery`.
  public func fail(_ reason: String, isKept: Bool = false) throws {
    try betweenPeers(action("fail"), sender) { try entry.fail(reason, isKept: isKept) }
  }

  /// Gives it back; see `PeerDelivery`.
  public func release(after pause: Duration) throws {
    try betweenPeers(action("give back"), sender) { try entry.release(after: pause) }
  }

  private func action(_ verb: String) -> String { "\(verb) a message from \"\(sender)\"" }
}
