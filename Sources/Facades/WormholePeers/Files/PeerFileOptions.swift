public import Wormhole

/// How a file is to be sent.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// let options = PeerFileOptions(isMoved: true, expiry: .seconds(3_600))
/// let transfer = try phone.transfer(fileAt: file, to: "watch", options: options)
/// ```
public struct PeerFileOptions: Sendable, Hashable {
  /// Whether the file itself is handed over: a rename on the same file system, in constant time;
  /// across file systems it is copied, and removed when the copy is safe. Then the source is gone,
  /// unless it cannot be removed, or another program has it locked (flock(2)).
  ///
  /// A file that was handed over ends with its transfer: it is deleted once it is handled, or when
  /// it expires. When the transfer is cancelled it goes back to its old place, unless something
  /// else lies there; then it is deleted.
  public var isMoved: Bool
  /// The failures that the transfer survives.
  public var durability: Durability
  /// How long it may be delivered; nil for no limit.
  public var expiry: Duration?
  /// Whether `fileTransfers()` lists the transfer until its receipt is removed, or only until a day
  /// after the file was processed.
  public var receiptTerm: QueueReceipt.Term

  /// Makes options.
  public init(
    isMoved: Bool = false, durability: Durability = .standard, expiry: Duration? = nil,
    receiptTerm: QueueReceipt.Term = .untilForgotten
  ) {
    self.isMoved = isMoved
    self.durability = durability
    self.expiry = expiry
    self.receiptTerm = receiptTerm
  }
}

/// How much of a file is copied.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// let transfer = try phone.transfer(fileAt: file, to: "watch")
/// let token = transfer.observeProgress { progress in print(Int(progress.fraction * 100), "%") }
/// ```
public struct PeerFileProgress: Sendable, Hashable {
  /// Bytes copied.
  public let completedBytes: Int64
  /// Bytes of the whole.
  public let totalBytes: Int64
  /// Between 0 and 1; 1 for an empty file.
  public var fraction: Double {
    totalBytes > 0 ? Double(completedBytes) / Double(totalBytes) : 1
  }
}

/// A file that is being copied for a peer.
///
/// ```swift
/// let watch = try PeerSession("watch", in: container)
/// for incoming in try watch.incomingFiles() {
///   print(incoming.sender, incoming.progress.completedBytes, "of", incoming.progress.totalBytes)
/// }
/// ```
public struct PeerIncomingFile: Sendable, Hashable {
  /// The peer that sends it.
  public let sender: String
  /// How much of it is copied.
  public let progress: PeerFileProgress
}
