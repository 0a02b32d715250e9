import AppGroup
public import PropertyLists

extension PeerSession {
  /// Stores a message for a peer: it is delivered when the peer receives, whoever runs then, in the
  /// order of sending. A peer that registered to be started for queued work is started, if nobody
  /// receives for it; should that fail, `launchFailure` of what is returned says why.
  ///
  /// - Parameters:
  ///   - value: what the peer gets.
  ///   - peer: to whom; it need not have been seen before.
  ///   - options: how.
  /// - Returns: by what to learn what becomes of it.
  /// - Throws: `PeerError`: `queueFull` when a million messages, or 1 GiB of them, wait for the peer
  ///   already; `tooLarge` and `unsupportedValue`; `noSpace`, or what else the container refuses. It
  ///   is not sent then.
  /// - Complexity: as `Queue.Sender.send`: create, lock, write, rename and a few cheap calls, shared by
  ///   all that are sent at the same moment; and a look whether the peer wants to be started.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func enqueue(
    _ value: PropertyListValue, to peer: String, options: PeerMessageOptions = .init()
  ) throws -> PeerTransfer {
    try betweenPeers(sending(to: peer), peer) {
      let sender = try outbox.sender(in: container, from: name, to: peer)
      let id = try sender.send(
        value, durability: options.durability, expires: options.expiry,
        key: options.key, keepsReceipt: options.keepsReceipt,
        receiptTerm: options.receiptTerm)
      let failure = wake(peer, isUrgent: options.isUrgent, for: sender.queue)
      return PeerTransfer(id, to: peer, value, by: sender, launchFailure: failure)
    }
  }

  /// Stores a message for a peer; see the form without `async`. What has begun is not cancelled.
  @discardableResult
  public func enqueue(
    _ value: PropertyListValue, to peer: String, options: PeerMessageOptions = .init()
  ) async throws -> PeerTransfer {
    try await betweenPeers(sending(to: peer), peer) {
      let sender = try outbox.sender(in: container, from: name, to: peer)
      let id = try await sender.send(
        value, durability: options.durability, expires: options.expiry,
        key: options.key, keepsReceipt: options.keepsReceipt,
        receiptTerm: options.receiptTerm)
      let failure = try await Blocking.run {
        self.wake(peer, isUrgent: options.isUrgent, for: sender.queue)
      }
      return PeerTransfer(id, to: peer, value, by: sender, launchFailure: failure)
    }
  }

  /// Stores a message of any type for a peer; see the dynamic form.
  ///
  /// - Throws: also `unsupportedValue` for what cannot be encoded as a property list.
  @discardableResult
  public func enqueue<Message: Encodable & Sendable>(
    encoding message: Message, to peer: String, options: PeerMessageOptions = .init()
  ) async throws -> PeerTransfer {
    try await enqueue(encoded(message, for: peer), to: peer, options: options)
  }

  /// Stores a message of any type for a peer; see the dynamic form without `async`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func enqueue<Message: Encodable>(
    encoding message: Message, to peer: String, options: PeerMessageOptions = .init()
  ) throws -> PeerTransfer {
    try enqueue(encoded(message, for: peer), to: peer, options: options)
  }

  private func encoded(
    _ message: some Encodable, for peer: String
  ) throws(PeerError) -> PropertyListValue {
    try betweenPeers(sending(to: peer), peer) { try PropertyListValue(encoding: message) }
  }

  private func sending(to peer: String) -> String { "send a message to \"\(peer)\"" }

  /// Becomes the one who receives the messages for this name, one process at a time. That needs no
  /// `activate()`.
  ///
  /// - Parameters:
  ///   - deadline: until when to wait for another receiver; one that is stopped is replaced. By default 10
  ///     seconds from now.
  ///   - maximumDeliveries: after so many deliveries, also to receivers before that crashed, what is not
  ///     ended has failed: its sender learns it, and it is kept: see `failures(for:)`. By default any number.
  /// - Throws: `PeerError`: `replaced`, its `holder` who receives instead; or what the container
  ///   refuses.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func receiveMessages(
    until deadline: ContinuousClock.Instant? = nil, maximumDeliveries: Int? = nil
  ) throws -> PeerReceiver {
    try betweenPeers(receiving) {
      do {
        let consumer = try inbox.consume(
          until: deadline, maximumDeliveries: maximumDeliveries)
        return PeerReceiver(consumer, for: name, core.reachabilities)
      } catch {
        throw busy(error)
      }
    }
  }

  /// Becomes the one who receives the messages for this name; see the form without `async`.
  /// Cancelling the task ends the wait as `cancelled`.
  public func receiveMessages(
    until deadline: ContinuousClock.Instant? = nil, maximumDeliveries: Int? = nil
  ) async throws -> PeerReceiver {
    try await betweenPeers(receiving) {
      do {
        let consumer = try await inbox.consume(
          until: deadline, maximumDeliveries: maximumDeliveries)
        return PeerReceiver(consumer, for: name, core.reachabilities)
      } catch {
        throw busy(error)
      }
    }
  }

  private var receiving: String { "receive messages for \"\(name)\"" }

  private var inbox: Queue { container.own.queue(PeerNames.messages(name)) }

  // Who waits in vain is told who receives instead, as one is who was replaced.
  private func busy(_ error: any Error) -> any Error {
    guard let error = error as? AppGroupError, error.code == .timedOut else { return error }
    return PeerError(
      .replaced, receiving, reason: error.reason, remedy: error.remedy, holder: error.holder,
      underlying: error)
  }
}
