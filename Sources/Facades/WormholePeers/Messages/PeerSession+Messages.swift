import Wormhole
public import WormholePropertyLists
import WormholeSystem

extension PeerSession {
  /// Stores a message for a peer: it is delivered when a process receives under that name, in the
  /// order of sending. If no process receives for the peer, and it registered to be started for
  /// queued work, it is started; if that fails, `launchFailure` of the result has the reason.
  ///
  /// - Parameters:
  ///   - value: the message.
  ///   - peer: the peer that gets it; it may be unknown so far.
  ///   - options: how it is sent.
  /// - Returns: the transfer, which shows how far it is and how it ends.
  /// - Throws: `PeerError`: `queueFull` when a million messages, or 1 GiB of them, wait for the
  ///   peer already; `tooLarge` and `unsupportedValue`; `noSpace`, or another error of the
  ///   container. Then it is not sent.
  /// - Complexity: as `Queue.Sender.enqueue`: create, lock, write, rename and a few cheap calls, shared by
  ///   all messages that are sent at the same moment; and a look whether the peer is to be started.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func enqueue(
    _ value: PropertyListValue, to peer: String, options: PeerMessageOptions = .init()
  ) throws -> PeerMessageTransfer {
    try betweenPeers(sending(to: peer), peer) {
      let sender = try outbox.sender(to: peer)
      let id = try sender.enqueue(
        value, durability: options.durability, expires: options.expiry,
        key: options.key, keepsReceipt: options.keepsReceipt,
        receiptTerm: options.receiptTerm)
      let failure = outbox.wake(peer, isUrgent: options.isUrgent, for: sender.queue)
      return PeerMessageTransfer(id, to: peer, value, by: sender, launchFailure: failure)
    }
  }

  /// Stores a message for a peer; see the form without `async`. Once begun, it cannot be cancelled.
  @discardableResult
  public func enqueue(
    _ value: PropertyListValue, to peer: String, options: PeerMessageOptions = .init()
  ) async throws -> PeerMessageTransfer {
    try await betweenPeers(sending(to: peer), peer) {
      let sender = try outbox.sender(to: peer)
      let id = try await sender.enqueue(
        value, durability: options.durability, expires: options.expiry,
        key: options.key, keepsReceipt: options.keepsReceipt,
        receiptTerm: options.receiptTerm)
      let failure = try await Blocking.run {
        self.outbox.wake(peer, isUrgent: options.isUrgent, for: sender.queue)
      }
      return PeerMessageTransfer(id, to: peer, value, by: sender, launchFailure: failure)
    }
  }

  /// Stores a message of any type for a peer; see the dynamic form.
  ///
  /// - Throws: also `unsupportedValue` for a message that cannot be encoded as a property list.
  @discardableResult
  public func enqueue<Message: Encodable & Sendable>(
    encoding message: Message, to peer: String, options: PeerMessageOptions = .init()
  ) async throws -> PeerMessageTransfer {
    try await enqueue(encoded(message, for: peer), to: peer, options: options)
  }

  /// Stores a message of any type for a peer; see the dynamic form without `async`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func enqueue<Message: Encodable>(
    encoding message: Message, to peer: String, options: PeerMessageOptions = .init()
  ) throws -> PeerMessageTransfer {
    try enqueue(encoded(message, for: peer), to: peer, options: options)
  }

  private func encoded(
    _ message: some Encodable, for peer: String
  ) throws(PeerError) -> PropertyListValue {
    try betweenPeers(sending(to: peer), peer) { try PropertyListValue(encoding: message) }
  }

  private func sending(to peer: String) -> String { "send a message to \"\(peer)\"" }
}
