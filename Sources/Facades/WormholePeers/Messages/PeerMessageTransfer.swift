public import Wormhole
public import WormholePropertyLists

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
  /// - Throws: `PeerError`, an error of the container.
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
  ///
  /// - Throws: `PeerError`, an error of the container.
  public func removeReceipt() throws {
    try betweenPeers("forget a message to \"\(peer)\"", peer) {
      if try by.status(of: entry).isEnd { try by.forget(entry) }
    }
  }
}
