public import AppGroup
public import PropertyLists

/// A guaranteed message on its way: it outlives the processes of both sides.
public struct PeerTransfer: Sendable {
  /// Names it among all transfers of the container; to be kept as text.
  public let id: String
  /// Who sends it.
  public let sender: String
  /// Who is to get it.
  public let peer: String
  /// What was sent.
  public let value: PropertyListValue

  let session: PeerSession

  /// What has become of it.
  public func status() throws -> QueueEntryStatus { preconditionFailure("unbuilt") }

  /// Waits until it has ended: processed, cancelled, expired or failed.
  ///
  /// - Parameter deadline: until when to wait; without one as long as it takes.
  /// - Returns: how it ended, or how far it is when the deadline has passed.
  public func end(until deadline: ContinuousClock.Instant? = nil) async throws -> QueueEntryStatus {
    preconditionFailure("unbuilt")
  }

  /// Waits until it has ended; see the form with `async`. Blocks the calling thread.
  public func end(until deadline: ContinuousClock.Instant) throws -> QueueEntryStatus {
    preconditionFailure("unbuilt")
  }

  /// Takes it back, unless the peer has it already.
  ///
  /// - Returns: whether it is cancelled.
  @discardableResult
  public func cancel() throws -> Bool { preconditionFailure("unbuilt") }

  /// Takes it back; see the form without `async`.
  @discardableResult
  public func cancel() async throws -> Bool { preconditionFailure("unbuilt") }

  /// Says that its end is known: it is not listed by `transfers()` any more. No effect on one that has
  /// not ended.
  public func forget() throws { preconditionFailure("unbuilt") }
}

/// How a guaranteed message is to be sent.
public struct PeerMessageOptions: Sendable, Hashable {
  /// What it survives.
  public var durability: Durability
  /// After how long it is not to be delivered any more; nil for never.
  public var expiry: Duration?
  /// A newer message with the same key from the same sender takes the place of one that waits.
  public var key: String?
  /// Whether it is to start a peer that registered to be started for urgent work.
  public var isUrgent: Bool
  /// Whether the sender wants to learn its end also after its own restart: then it is listed by
  /// `transfers()` until it is forgotten.
  public var keepsReceipt: Bool

  /// Makes options.
  public init(
    durability: Durability = .standard, expiry: Duration? = nil, key: String? = nil,
    isUrgent: Bool = false, keepsReceipt: Bool = true
  ) {
    self.durability = durability
    self.expiry = expiry
    self.key = key
    self.isUrgent = isUrgent
    self.keepsReceipt = keepsReceipt
  }
}
