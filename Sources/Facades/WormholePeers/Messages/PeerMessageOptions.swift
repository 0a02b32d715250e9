public import Wormhole

/// How a guaranteed message is to be sent.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// let options = PeerMessageOptions(expiry: .seconds(60), key: "score", keepsReceipt: true)
/// try await phone.enqueue(["score": 3], to: "watch", options: options)
/// ```
public struct PeerMessageOptions: Sendable, Hashable {
  /// The failures that it survives once it is stored; `.standard` survives the end of processes,
  /// `.durable` also a loss of power.
  public var durability: Durability
  /// How long it may be delivered; nil for no limit.
  public var expiry: Duration?
  /// A newer message with the same key from the same sender replaces a waiting message.
  public var key: String?
  /// Whether it starts a peer that registered to be started for urgent work.
  public var isUrgent: Bool
  /// Whether the sender can find it again, with its end, even after the sender's own restart:
  /// `messageTransfers()` lists it, and it takes up space, until its receipt is removed. Without a
  /// receipt `status(ofMessage:)` shows for a day how it ended.
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
