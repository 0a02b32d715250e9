import FoundationEssentials
public import Wormhole
import WormholePropertyLists

/// How a file is sent.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// let options = PeerFileOptions(durability: .durable, expiry: .seconds(3_600))
/// let transfer = try phone.transfer(fileAt: file, to: "watch", options: options)
/// ```
public struct PeerFileOptions: Sendable, Hashable {
  /// The failures that the transfer survives.
  public var durability: Durability
  /// How long it may be delivered; nil for no limit.
  public var expiry: Duration?
  /// Whether `fileTransfers()` lists the transfer until its receipt is removed, or only until a day
  /// after the file was processed.
  public var receiptTerm: QueueReceipt.Term

  /// Makes options.
  public init(
    durability: Durability = .standard, expiry: Duration? = nil,
    receiptTerm: QueueReceipt.Term = .untilForgotten
  ) {
    self.durability = durability
    self.expiry = expiry
    self.receiptTerm = receiptTerm
  }
}
