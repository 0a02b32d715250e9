public import PropertyLists

extension PeerSession {
  /// Stores a message for a peer: it is delivered when the peer receives, whoever runs then, in the
  /// order of sending.
  ///
  /// - Throws: `PeerError`: `queueFull`, `tooLarge`, or what the container refuses. It is not sent then.
  @discardableResult
  public func enqueue(
    _ value: PropertyListValue, to peer: String, options: PeerMessageOptions = .init()
  ) throws -> PeerTransfer { preconditionFailure("unbuilt") }

  /// Stores a message for a peer; see the form without `async`.
  @discardableResult
  public func enqueue(
    _ value: PropertyListValue, to peer: String, options: PeerMessageOptions = .init()
  ) async throws -> PeerTransfer { preconditionFailure("unbuilt") }

  /// Stores a message of any type for a peer; see the dynamic form.
  @discardableResult
  public func enqueue<Message: Encodable & Sendable>(
    encoding message: Message, to peer: String, options: PeerMessageOptions = .init()
  ) async throws -> PeerTransfer { preconditionFailure("unbuilt") }

  /// The messages under this session's name whose end is not known yet: those that wait or are taken,
  /// and those that ended and were not forgotten; also what an earlier process of this name sent. In
  /// the order of sending.
  ///
  /// - Parameter peer: only those for this one.
  public func transfers(to peer: String? = nil) throws -> [PeerTransfer] {
    preconditionFailure("unbuilt")
  }

  /// The message of an id, of whoever's; nil if no such message is known any more.
  public func transfer(id: String) throws -> PeerTransfer? { preconditionFailure("unbuilt") }

  /// Becomes the one who receives the messages for this name, one process at a time.
  ///
  /// - Parameter deadline: until when to wait for another receiver; one that is stopped is replaced. By
  ///   default 10 seconds from now.
  public func receiveMessages(until deadline: ContinuousClock.Instant? = nil) throws -> PeerReceiver
  {
    preconditionFailure("unbuilt")
  }

  /// Becomes the one who receives the messages for this name; see the form without `async`.
  public func receiveMessages(
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> PeerReceiver { preconditionFailure("unbuilt") }
}
