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

  /// The messages that were sent under this session's name with a receipt that was not removed:
  /// messages that wait or are taken, and messages that have ended, also of an earlier process of
  /// this name. In the order of sending to each peer.
  ///
  /// - Parameter peer: only messages to this peer.
  /// - Complexity: a listing of each peer's queue, and reading each file that has such messages.
  public func messageTransfers(to peer: String? = nil) throws -> [PeerMessageTransfer] {
    try transfers(to: peer) { try $0.receipts() }
  }

  private func transfers(
    to peer: String?, _ look: (Queue.Sender) throws -> [QueueReceipt]
  ) throws -> [PeerMessageTransfer] {
    try betweenPeers("look for messages of \"\(name)\"", peer) {
      let peers = try peer.map { [$0] } ?? receivers()
      return try peers.flatMap { peer in
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

  /// The message of an id, of any sender; nil for any other text, and for a message that has left
  /// no trace: it has ended, and no receipt was kept or the receipt was removed.
  public func messageTransfer(id: String) throws -> PeerMessageTransfer? {
    guard let id = MessageID(id), !id.isFile else { return nil }
    return try betweenPeers("look for a message to \"\(id.peer)\"", id.peer) {
      let sender = try sender(of: id)
      return try sender.receipt(of: id.entry).map {
        PeerMessageTransfer(id.entry, to: id.peer, $0.payload, by: sender)
      }
    }
  }

  /// The progress of the message of an id, of any sender, as `PeerMessageTransfer.status()`; nil
  /// for any other text. A message that has left no trace counts as processed.
  public func status(ofMessage id: String) throws -> QueueEntryStatus? {
    guard let id = MessageID(id), !id.isFile else { return nil }
    return try betweenPeers("look for a message to \"\(id.peer)\"", id.peer) {
      try sender(of: id).status(of: id.entry)
    }
  }

  /// Removes the note of how the message of an id ended, of any sender, as
  /// `PeerMessageTransfer.removeReceipt()`, even if it was sent without a receipt. No effect on a
  /// message that has not ended.
  ///
  /// - Returns: whether there was a note.
  @discardableResult
  public func removeReceipt(ofMessage id: String) throws -> Bool {
    guard let id = MessageID(id), !id.isFile else { return false }
    return try betweenPeers("forget a message to \"\(id.peer)\"", id.peer) {
      let sender = try sender(of: id)
      let status = try sender.status(of: id.entry)
      guard status.isEnd else { return false }
      let isKnown = try status != .processed || sender.receipt(of: id.entry) != nil
      try sender.forget(id.entry)
      return isKnown
    }
  }

  private func sender(of id: MessageID) throws -> Queue.Sender {
    let sender = id.entry.sender
    guard sender.utf8.elementsEqual(name.utf8) else {
      return try container.own.queue(PeerNames.messages(id.peer)).sender(sender)
    }
    return try outbox.sender(to: id.peer)
  }

  /// The peers for which something was ever queued.
  func receivers() throws -> [String] {
    // A planted queue with any other name does not belong to a peer.
    let names = try container.own.queueNames().compactMap { PeerNames.peer(ofQueue: $0) }
      .filter { PeerNames.isName($0) }
    // By bytes: two names may be equal as strings.
    var known: Set<[UInt8]> = []
    return names.filter { known.insert(Array($0.utf8)).inserted }.sorted()
  }
}

/// The calls that a message and a file on its way to a peer share; see `PeerMessageTransfer` and
/// `PeerFileTransfer` for the errors and costs of each call.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// let transfers: [any PeerTransfer] = [
///   try await phone.enqueue(["film": "Metropolis"], to: "watch"),
///   try phone.transfer(fileAt: file, to: "watch"),
/// ]
/// for transfer in transfers { print(transfer.id, try transfer.status()) }
/// ```
public protocol PeerTransfer: Sendable {
  /// Its name in this container, by which a later process of the sender finds it.
  var id: String { get }
  /// The receiver.
  var peer: String { get }
  /// The current status.
  func status() throws -> QueueEntryStatus
  /// Waits until it has ended.
  func finalStatus(until deadline: ContinuousClock.Instant?) async throws -> QueueEntryStatus
  /// Takes it back unless the peer has it already; returns whether that was in time.
  func cancel() throws -> Bool
  /// Forgets it once it has ended.
  func removeReceipt() throws
}

extension PeerMessageTransfer: PeerTransfer {}
extension PeerFileTransfer: PeerTransfer {}

/// A guaranteed message on its way: it outlives the processes of both sides.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// let transfer = try await phone.enqueue(["film": "Metropolis"], to: "watch")
/// if try await transfer.cancel() { print("nobody had taken it yet") }
/// ```
public struct PeerMessageTransfer: Sendable {
  /// The peer that gets the message.
  public let peer: String
  /// The value that was sent.
  public let value: PropertyListValue
  /// Why a peer that is registered for it could not be started; nil otherwise, and for a message
  /// that was found again. The message waits nevertheless.
  public let launchFailure: PeerError?

  private let entry: QueueEntryID
  private let by: Queue.Sender

  init(
    _ entry: QueueEntryID, to peer: String, _ value: PropertyListValue, by sender: Queue.Sender,
    launchFailure: PeerError? = nil
  ) {
    self.entry = entry
    self.peer = peer
    self.value = value
    by = sender
    self.launchFailure = launchFailure
  }

  /// Identifies it among all transfers of the container; a program may keep it as text.
  public var id: String { MessageID(peer: peer, entry: entry).description }
  /// The peer that sends the message.
  public var sender: String { by.name }

  /// How far it is, or how it ended.
  ///
  /// - Complexity: opens and reads the file that it was stored in, if that still exists.
  public func status() throws -> QueueEntryStatus {
    try betweenPeers("look for a message to \"\(peer)\"", peer) { try by.status(of: entry) }
  }

  /// Waits until it has ended, however: processed, cancelled, expired, superseded or failed.
  ///
  /// - Parameter deadline: when to stop waiting; nil waits as long as it takes.
  /// - Returns: how it ended, or how far it is when the deadline has passed.
  /// - Throws: `PeerError`: `cancelled` with the task; or an error of the container.
  /// - Complexity: as `status()`, at the beginning and after each change of the file that it was
  ///   stored in. Nothing polls.
  public func finalStatus(
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> QueueEntryStatus {
    try await betweenPeers(waiting, peer) { try await by.finalStatus(of: entry, until: deadline) }
  }

  /// Waits until it has ended; see the form with `async`. Blocks the calling thread.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func finalStatus(until deadline: ContinuousClock.Instant) throws -> QueueEntryStatus {
    try betweenPeers(waiting, peer) { try by.finalStatus(of: entry, until: deadline) }
  }

  private var waiting: String { "wait for the end of a message to \"\(peer)\"" }

  /// Takes it back, unless the peer has it already: it is cancelled or delivered, never both.
  ///
  /// - Returns: whether it is cancelled; false when the peer has it, or it has ended otherwise.
  /// - Throws: `PeerError`: `timedOut`, its `holder` a process that cancels another message; or an
  ///   error of the container. The message is then unchanged.
  /// - Complexity: writes the file that it was stored in again, with two fsyncs.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func cancel() throws -> Bool {
    try betweenPeers(cancelling, peer) { try by.cancel(entry) }
  }

  /// Takes it back; see the form without `async`.
  @discardableResult
  public func cancel() async throws -> Bool {
    try await betweenPeers(cancelling, peer) { try await by.cancel(entry) }
  }

  private var cancelling: String { "take back a message to \"\(peer)\"" }

  /// Removes the receipt: `messageTransfers()` lists the message no more. No effect on a message
  /// that has not ended.
  ///
  /// A message that was sent with a receipt and was not processed leaves a note in the container
  /// until this is called; any other message leaves one for a day.
  public func removeReceipt() throws {
    try betweenPeers("forget a message to \"\(peer)\"", peer) {
      if try by.status(of: entry).isEnd { try by.forget(entry) }
    }
  }
}

/// Identifies a guaranteed message among all transfers of a container, as text that can be stored:
/// the peer's name, encoded as the names of values are, and the entry's:
/// `peer/<peer>/messages/<batch>/<number>`. The entry of a file is named so, too, with `files`.
///
/// It is one line of ASCII that no shell splits, whatever the peer's name is.
struct MessageID: CustomStringConvertible {
  let peer: String
  let entry: QueueEntryID
  let isFile: Bool

  init(peer: String, entry: QueueEntryID, isFile: Bool = false) {
    self.peer = peer
    self.entry = entry
    self.isFile = isFile
  }

  /// Reads the text that `description` returned; nil for any other text.
  init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 5, case .identifier(let peer) = EncodedName.decode(parts[1].utf8),
      PeerNames.isName(peer), let entry = QueueEntryID("\(parts[3])/\(parts[4])")
    else { return nil }
    self.init(peer: peer, entry: entry, isFile: parts[2] == "files")
    guard description.utf8.elementsEqual(text.utf8) else { return nil }
  }

  var description: String {
    "peer/\(EncodedName(peer).component)/\(isFile ? "files" : "messages")/\(entry)"
  }
}
