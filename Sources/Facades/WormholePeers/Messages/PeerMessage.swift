public import FoundationEssentials
public import Wormhole
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
  private let entry: PlainEntry
  private let receiver: String

  init(_ entry: PlainEntry, for receiver: String) {
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
  /// The number of this attempt: 1 for the first.
  public var attempt: Int { entry.attempt }

  /// Decodes the message as a type of the program.
  ///
  /// - Throws: `WormholeError.Code.unexpectedValue`.
  public func decode<Message: Decodable>(_ type: Message.Type) throws -> Message {
    try value.decoded(as: type, action("read"), from: sender)
  }

  /// Ends it as processed; see `PeerDelivery`.
  ///
  /// - Complexity: one unlink; for a message stored together with others, until the last of them,
  ///   an open, a write and a close.
  public func acknowledge() throws {
    try betweenPeers(action("acknowledge"), sender) { try entry.acknowledge() }
  }

  /// Ends it as failed; see `PeerDelivery`.
  public func fail(_ reason: String, isKept: Bool = false) throws {
    try betweenPeers(action("fail"), sender) { try entry.fail(reason, isKept: isKept) }
  }

  /// Ends a failed attempt; see `PeerDelivery`.
  public func retry(after pause: Duration, because reason: String) throws {
    try betweenPeers(action("give back"), sender) {
      try entry.retry(after: pause, because: reason)
    }
  }

  /// Gives it back unhandled; see `PeerDelivery`.
  public func giveBack() throws {
    try betweenPeers(action("give back"), sender) { try entry.giveBack() }
  }

  private func action(_ verb: String) -> String { "\(verb) a message from \"\(sender)\"" }
}

/// How a guaranteed message is sent.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// let options = PeerMessageOptions(expiry: .seconds(60), key: "score", keepsReceipt: true)
/// try await phone.enqueue(["score": 3], to: "watch", options: options)
/// ```
public struct PeerMessageOptions: Sendable, Hashable {
  /// The failures that it survives once it is stored; `.standard` survives the end of processes,
  /// `.durable` also a power loss.
  public var durability: Durability
  /// How long it may be delivered; nil for no limit.
  public var expiry: Duration?
  /// A newer message with the same key from the same sender replaces a waiting message.
  public var key: String?
  /// Whether it starts a peer that registered to be started for urgent work.
  public var isUrgent: Bool
  /// Whether the sender can find it again, with its end, even after the sender's own restart:
  /// `messageTransfers()` lists it, and it takes up space, until its receipt is removed. Without a
  /// receipt, `status(ofMessage:)` shows for a day how it ended.
  public var keepsReceipt: Bool
  /// Whether the receipt is removed automatically a day after the message was processed.
  public var receiptTerm: QueueReceipt.Term

  /// Makes options.
  public init(
    durability: Durability = .standard, expiry: Duration? = nil, key: String? = nil,
    isUrgent: Bool = false, keepsReceipt: Bool = false,
    receiptTerm: QueueReceipt.Term = .untilForgotten
  ) {
    self.durability = durability
    self.expiry = expiry
    self.key = key
    self.isUrgent = isUrgent
    self.keepsReceipt = keepsReceipt
    self.receiptTerm = receiptTerm
  }
}
