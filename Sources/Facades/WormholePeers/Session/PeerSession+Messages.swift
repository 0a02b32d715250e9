public import Wormhole
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
  /// - Throws: `WormholeError.Code.queueFull` if a million messages, or 1 GiB of them, already wait for
  ///   the peer; `.tooLarge` and `.unsupportedValue`; `.noSpace`, or another error of the
  ///   container. Then it is not sent.
  /// - Complexity: as `QueueSender.enqueue`: create, lock, write, rename and a few cheap calls,
  ///   shared by all messages sent at the same moment; and a look whether to start the peer.
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
  ) throws(WormholeError) -> PropertyListValue {
    try betweenPeers(sending(to: peer), peer) { try PropertyListValue(encoding: message) }
  }

  private func sending(to peer: String) -> String { "send a message to \"\(peer)\"" }

  /// The messages sent under this session's name with a receipt that was not removed: messages that
  /// wait or are taken, and messages that have ended, even those of an earlier process of this
  /// name. In the order of sending to each peer.
  ///
  /// - Parameter peer: only messages to this peer.
  /// - Complexity: a listing of each peer's queue, and reading each file that has such messages.
  public func messageTransfers(to peer: String? = nil) throws -> [PeerMessageTransfer] {
    try transfers(to: peer) { try $0.receipts() }
  }

  private func transfers(
    to peer: String?, _ look: (PlainSender) throws -> [QueueReceipt]
  ) throws -> [PeerMessageTransfer] {
    try betweenPeers("look for messages of \"\(name)\"", peer) {
      try forReceivers(peer) { peer in
        let sender = try outbox.sender(to: peer)
        return try look(sender).map {
          PeerMessageTransfer($0.id, to: peer, $0.payload, by: sender)
        }
      }
    }
  }

  /// The messages of `messageTransfers(to:)`, and waiting or taken ones without a receipt.
  ///
  /// - Parameter peer: only messages to this peer.
  /// - Complexity: as `messageTransfers(to:)`, and reading each file of this sender that waits or is taken.
  public func outstandingMessageTransfers(to peer: String? = nil) throws -> [PeerMessageTransfer] {
    try transfers(to: peer) { try $0.outstanding() }
  }

  /// Takes back everything that waits for a peer, and the context for it, but nothing that is sent
  /// after the condition is asked for.
  func takeBackAll(for peer: String, if isDue: () throws -> Bool) throws {
    let messages: [any PeerTransfer] = try outstandingMessageTransfers(to: peer)
    let transfers = try messages + fileTransfers(to: peer)
    let context = try ownContext(peer)
    let version = try context.version()
    guard try isDue() else { return }
    for transfer in transfers { _ = try transfer.cancel() }
    if version != nil { _ = try context.compareAndSet(version, nil) }
  }

  /// The message with an id, of any sender; nil for any other text, and for a message that has left
  /// no trace: it has ended, and no receipt was kept or the receipt was removed.
  public func messageTransfer(id: String) throws -> PeerMessageTransfer? {
    try withMessage(id, "look for") { id, sender in
      try sender.receipt(of: id.entry).map {
        PeerMessageTransfer(id.entry, to: id.peer, $0.payload, by: sender)
      }
    } ?? nil
  }

  /// The progress of the message with an id, of any sender, as `PeerMessageTransfer.status()`; nil
  /// for any other text. A message that has left no trace counts as processed.
  public func status(ofMessage id: String) throws -> QueueEntryStatus? {
    try withMessage(id, "look for") { id, sender in try sender.status(of: id.entry) }
  }

  /// Removes the note of how the message with an id ended, of any sender, as
  /// `PeerMessageTransfer.removeReceipt()`, even if it was sent without a receipt. No effect on a
  /// message that has not ended.
  ///
  /// - Returns: whether there was a note.
  @discardableResult
  public func removeReceipt(ofMessage id: String) throws -> Bool {
    try withMessage(id, "forget") { id, sender in
      let status = try sender.status(of: id.entry)
      guard status.isEnd else { return false }
      let isKnown = try status != .processed || sender.receipt(of: id.entry) != nil
      try sender.forget(id.entry)
      return isKnown
    } ?? false
  }

  /// Runs a call for the message with an id, with its sender; nil for any other text.
  private func withMessage<Result>(
    _ id: String, _ verb: String, _ body: (MessageID, PlainSender) throws -> Result
  ) throws -> Result? {
    guard let id = MessageID(id), !id.isFile else { return nil }
    return try betweenPeers("\(verb) a message to \"\(id.peer)\"", id.peer) {
      let sender = id.entry.sender
      let isOwn = sender.utf8.elementsEqual(name.utf8)
      return try body(
        id,
        isOwn
          ? outbox.sender(to: id.peer) : queue(of: id.peer, isFile: false).sender(sender))
    }
  }

  /// Looks for something for one peer, or for all: then one peer's fault hides no other's.
  func forReceivers<Found>(
    _ peer: String?, _ look: (_ peer: String) throws -> [Found]
  ) throws -> [Found] {
    if let peer { return try look(peer) }
    return try Diagnostics.reportingFaults { faults in
      try receivers().flatMap { peer in
        let path = queue(of: peer, isFile: false).path
        return try faults.attempt("look at a peer's queues", path: path) { try look(peer) } ?? []
      }
    }
  }

  /// The peers for which anything was ever queued.
  private func receivers() throws -> [String] {
    // A planted queue with any other name does not belong to a peer.
    let names = try container.own.queueNames().compactMap { PeerNames.peer(ofQueue: $0) }
      .filter { PeerNames.isName($0) }
    // By bytes: two names may be equal as strings.
    var known: Set<[UInt8]> = []
    return names.filter { known.insert(Array($0.utf8)).inserted }.sorted()
  }
}
