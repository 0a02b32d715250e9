public import AppGroup
public import FoundationEssentials
public import PropertyLists

/// How a file is to be sent.
public struct PeerFileOptions: Sendable, Hashable {
  /// Whether the file itself is handed over: a rename on the same file system, and the source is gone.
  public var isMoved: Bool
  /// What the transfer survives.
  public var durability: Durability
  /// After how long it is not to be delivered any more; nil for never.
  public var expiry: Duration?

  /// Makes options.
  public init(
    isMoved: Bool = false, durability: Durability = .standard, expiry: Duration? = nil
  ) {
    self.isMoved = isMoved
    self.durability = durability
    self.expiry = expiry
  }
}

/// How much of a file is copied.
public struct PeerFileProgress: Sendable, Hashable {
  /// Bytes copied.
  public let completedBytes: Int64
  /// Bytes of the whole.
  public let totalBytes: Int64
  /// Between 0 and 1; 1 for an empty file that is complete.
  public var fraction: Double {
    totalBytes > 0 ? Double(completedBytes) / Double(totalBytes) : 1
  }
}

/// A file on its way to a peer. Thread-safe.
public final class PeerFileTransfer: Sendable {
  init(id: String, sender: String, peer: String, source: URL, metadata: PropertyListValue?) {
    self.id = id
    self.sender = sender
    self.peer = peer
    self.source = source
    self.metadata = metadata
  }

  /// Names it among all transfers of the container; to be kept as text.
  public let id: String
  /// Who sends it.
  public let sender: String
  /// Who is to get it.
  public let peer: String
  /// The file that was sent.
  public let source: URL
  /// What was sent with it.
  public let metadata: PropertyListValue?

  /// What has become of it; `stored` while it is copied, too.
  public func status() throws -> QueueEntryStatus { preconditionFailure("unbuilt") }

  /// How much is copied.
  public var progress: PeerFileProgress { preconditionFailure("unbuilt") }

  /// Calls a handler as the copying goes on, a few times a second at most, and at its end.
  public func observeProgress(_ handler: @escaping @Sendable (PeerFileProgress) -> Void) {
    preconditionFailure("unbuilt")
  }

  /// Waits until the content is safe in the container: from then on it outlives this process.
  public func stored() async throws { preconditionFailure("unbuilt") }

  /// Waits until the content is safe in the container; blocks the calling thread.
  public func stored(until deadline: ContinuousClock.Instant) throws {
    preconditionFailure("unbuilt")
  }

  /// Waits until it has ended: processed, cancelled, expired or failed.
  public func end(until deadline: ContinuousClock.Instant? = nil) async throws -> QueueEntryStatus {
    preconditionFailure("unbuilt")
  }

  /// Ends it, also in the middle of copying, unless the peer has it already.
  ///
  /// - Returns: whether it is cancelled.
  @discardableResult
  public func cancel() throws -> Bool { preconditionFailure("unbuilt") }

  /// Says that its end is known: it is not listed by `fileTransfers()` any more.
  public func forget() throws { preconditionFailure("unbuilt") }
}
