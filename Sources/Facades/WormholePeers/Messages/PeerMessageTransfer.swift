public import Wormhole
public import WormholePropertyLists

/// The calls shared by a message and a file on its way to a peer; see `PeerMessageTransfer` and
/// `PeerFileTransfer` for each call's errors and costs.
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
  /// Takes it back unless the peer already has it; returns whether that was in time.
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
  /// Why a peer registered for it could not be started; nil otherwise, and for a message that was
  /// found again. The message waits nevertheless.
  public let launchFailure: WormholeError?

  private let entry: QueueEntryID
  private let by: PlainSender

  init(
    _ entry: QueueEntryID, to peer: String, _ value: PropertyListValue, by sender: PlainSender,
    launchFailure: WormholeError? = nil
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
  /// - Complexity: opens and reads the file in which it was stored, if that still exists.
  public func status() throws -> QueueEntryStatus {
    try betweenPeers(action("look for"), peer) { try by.status(of: entry) }
  }

  /// Whether it is waiting, but will never be delivered: its receiver ends it as expired.
  package func hasExpired() throws -> Bool {
    try betweenPeers(action("look for"), peer) { try by.receipt(of: entry)?.hasExpired ?? false }
  }

  /// Waits until it has ended: processed, cancelled, expired, superseded or failed.
  ///
  /// - Parameter deadline: when to stop waiting; nil waits as long as it takes.
  /// - Returns: how it ended, or how far it is when the deadline has passed.
  /// - Throws: `WormholeError.Code.cancelled` with the task; or an error of the container.
  /// - Complexity: as `status()`, at the beginning and after each change of the file in which it
  ///   was stored. Nothing polls.
  public func finalStatus(
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> QueueEntryStatus {
    try await betweenPeers(action("wait for the end of"), peer) {
      try await by.finalStatus(of: entry, until: deadline)
    }
  }

  /// Waits until it has ended; see the `async` form. Blocks the calling thread.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func finalStatus(until deadline: ContinuousClock.Instant) throws -> QueueEntryStatus {
    try betweenPeers(action("wait for the end of"), peer) {
      try by.finalStatus(of: entry, until: deadline)
    }
  }

  /// Takes it back, unless the peer already has it: it is cancelled or delivered, never both.
  ///
  /// - Returns: whether it is cancelled; false if the peer has it, or it has ended otherwise.
  /// - Throws: `WormholeError.Code.timedOut`, its `holder` a process that cancels another message; or
  ///   an error of the container. The message is then unchanged.
  /// - Complexity: rewrites the file in which it was stored, with two fsyncs.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func cancel() throws -> Bool {
    try betweenPeers(action("take back"), peer) { try by.cancel(entry) }
  }

  /// Takes it back; see the form without `async`.
  @discardableResult
  public func cancel() async throws -> Bool {
    try await betweenPeers(action("take back"), peer) { try await by.cancel(entry) }
  }

  /// Removes the receipt: `messageTransfers()` no longer lists the message. No effect on a message
  /// that has not ended.
  ///
  /// A message sent with a receipt and not processed leaves a note in the container until this is
  /// called; any other message leaves one for a day.
  public func removeReceipt() throws {
    try betweenPeers(action("forget"), peer) {
      if try by.status(of: entry).isEnd { try by.forget(entry) }
    }
  }

  private func action(_ verb: String) -> String { "\(verb) a message to \"\(peer)\"" }
}

/// Identifies a guaranteed message among all transfers of a container, as text that can be stored:
/// the peer's name, encoded like the names of values, and the entry's:
/// `peer/<peer>/messages/<batch>/<number>`. A file's entry is named likewise, with `files`.
///
/// It is one line of ASCII that no shell splits, whatever the peer's name is.
struct MessageID: CustomStringConvertible {
  let peer: String
  let entry: QueueEntryID
  var isFile = false

  var description: String {
    "peer/\(EncodedName(peer).component)/\(isFile ? "files" : "messages")/\(entry)"
  }
}

extension MessageID {
  /// Reads the text that `description` returned; nil for any other text.
  init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 5, case .identifier(let peer) = EncodedName.decode(parts[1].utf8),
      PeerNames.isName(peer), let entry = QueueEntryID("\(parts[3])/\(parts[4])")
    else { return nil }
    self.init(peer: peer, entry: entry, isFile: parts[2] == "files")
    guard description.utf8.elementsEqual(text.utf8) else { return nil }
  }
}
