import Dispatch
public import FoundationEssentials
import Synchronization
public import Wormhole
public import WormholePropertyLists
import WormholeSystem

/// A file on its way to a peer: it outlives the processes of both sides. Thread-safe.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// let transfer = try phone.transfer(fileAt: file, to: "watch", metadata: ["film": "Metropolis"])
/// try await transfer.waitUntilStored()        // now the original may be removed
/// print(try await transfer.finalStatus(until: .now + .seconds(60)))
/// ```
public final class PeerFileTransfer: Sendable {
  let intention: FileIntention
  let entry: QueueEntryID
  let files: OutgoingFiles
  let state = Mutex(State())
  /// Observers may be slow, and copying must not wait for them.
  let reports = DispatchQueue(label: "wormhole.progress")

  /// Made by `OutgoingFiles` only: one object for all callers in a process.
  init(_ intention: FileIntention, as entry: QueueEntryID, of files: OutgoingFiles) {
    self.intention = intention
    self.entry = entry
    self.files = files
  }

  /// Identifies it among all transfers of the container; a program may keep it as text.
  public var id: String { intention.id }
  /// The peer that sends the file.
  public var sender: String { files.name }
  /// The peer that gets the file.
  public var peer: String { intention.peer }
  /// The file that was sent.
  public var source: URL { URL(filePath: intention.source, directoryHint: .notDirectory) }
  /// The metadata sent with it.
  public var metadata: PropertyListValue? { intention.metadata }

  private func action(_ verb: String) -> String { "\(verb) a file for \"\(peer)\"" }

  // MARK: Its status

  /// How far it is, or how it ended; `stored` even before and during copying. A failure of copying
  /// is `failed`, with its reason.
  ///
  /// - Complexity: opens and reads two small files; if another process copied it, also reads every
  ///   receipt of this sender once.
  public func status() throws -> QueueEntryStatus {
    try betweenPeers(action("look for"), peer) {
      let status = try files.intentions().status(of: entry)
      guard status == .processed else { return status == .taken ? .stored : status }
      guard let stored = try storedEntry() else { return .processed }
      return try files.sender(to: peer).status(of: stored)
    }
  }

  /// Whether it is waiting, but will never be delivered: its receiver ends it as expired.
  package func hasExpired() throws -> Bool {
    try betweenPeers(action("look for"), peer) {
      let receipt =
        if let stored = try storedEntry() {
          try files.sender(to: peer).receipt(of: stored)
        } else {
          try files.intentions().receipt(of: entry)
        }
      return receipt?.hasExpired ?? false
    }
  }

  /// The entry that its peer gets; nil if there is none, or if its receipt was removed.
  func storedEntry() throws -> QueueEntryID? {
    if let known = state.withLock(\.stored) { return known }
    if let entry = noteStored(try receipts()) { return entry }
    // The sender was killed before it stored its receipt.
    return try files.sender(to: peer).queue.entry(
      of: files.name, attachmentPrefix: intention.attachmentPrefix)
  }

  private func receipts() throws -> [QueueReceipt] {
    try files.sender(to: peer).receipts().filter { FileNotice($0.payload)?.id == intention.id }
  }

  /// - Parameter receipts: all receipts of this file.
  @discardableResult
  private func noteStored(_ receipts: [QueueReceipt]) -> QueueEntryID? {
    // A process that was stopped and replaced may have stored another, without a file; it fails.
    let delivered = receipts.first {
      if case .failed = $0.status { false } else { true }
    }
    if receipts.count == 1 { state.withLock { $0.stored = delivered?.id } }
    return (delivered ?? receipts.last)?.id
  }

  /// Finds the entries of many transfers, so that each need not read all receipts.
  ///
  /// - Complexity: one look at the receipts for each peer.
  static func findStored(_ transfers: [PeerFileTransfer]) throws {
    let unknown = transfers.filter { $0.state.withLock(\.stored) == nil }
    for (peer, transfers) in Dictionary(grouping: unknown, by: \.peer) where transfers.count > 1 {
      let receipts = Dictionary(
        grouping: try transfers[0].files.sender(to: peer).receipts()
      ) { FileNotice($0.payload)?.id }
      for transfer in transfers { transfer.noteStored(receipts[transfer.id] ?? []) }
    }
  }

  /// Waits until the content is safe in the container: then it outlives this process.
  ///
  /// - Throws: `WormholeError.Code.failed` with the reason, `.cancelled`, `.timedOut` for a file that
  ///   expired. Any other error is the reason why it is not stored after this process has tried for
  ///   ten seconds: it waits in the container, and copying continues when something is sent under
  ///   this name, or the next session is active; `cancel()` takes it back.
  public func waitUntilStored() async throws {
    try confirmStored(
      await betweenPeers(action("store"), peer) {
        let intentions = try files.intentions()
        return try await runSuspending { self.storing(in: intentions, until: nil) }
      })
  }

  /// Waits until the content is safe in the container; blocks the calling thread.
  ///
  /// - Throws: as the `async` form; also `timedOut` when the deadline has passed. The transfer
  ///   continues nevertheless.
  public func waitUntilStored(until deadline: ContinuousClock.Instant) throws {
    try confirmStored(
      betweenPeers(action("store"), peer) {
        try storing(in: files.intentions(), until: deadline).run()
      })
  }

  private func storing(
    in intentions: PlainSender, until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<QueueEntryStatus> {
    let ending = QueueEndWait(for: entry, of: intentions, until: deadline)
    let pause = WakeLatch()
    var failures = 0
    return StepwiseWait { [self] in
      do {
        let step = try ending.step()
        guard case .wait(let latch, let until) = step else { return step }
        failures = 0
        if let halt = state.withLock(\.halt) { throw halt }
        // Checks from time to time whether this process has given up.
        let slice = ContinuousClock.now + .seconds(1)
        return .wait(for: latch, until: min(until ?? slice, slice))
      } catch {
        let known = state.withLock { $0 }
        // This process knows that, although it cannot look.
        if known.isStored { return .done(.processed) }
        failures += 1
        // Waits ten seconds for descriptors.
        guard (error as? WormholeError)?.code == .tooManyOpenFiles, known.halt == nil,
          failures < 50
        else { throw known.halt ?? error }
        return .wait(for: pause, until: .now + .milliseconds(200))
      }
    }
  }

  private func confirmStored(_ status: QueueEntryStatus) throws(WormholeError) {
    let (code, reason): (WormholeError.Code, String)
    switch status {
    case .processed: return
    case .stored, .taken: (code, reason) = (.timedOut, "the time has passed, and it continues")
    case .cancelled: (code, reason) = (.cancelled, "it was cancelled")
    case .failed(let why): (code, reason) = (.failed, why)
    default: (code, reason) = (.timedOut, "it has expired")
    }
    throw WormholeError(code, action("store"), peer: peer, reason: reason)
  }

  /// Waits until it has ended: processed, cancelled, expired or failed.
  ///
  /// - Parameter deadline: when to stop waiting; nil waits as long as it takes.
  /// - Returns: how it ended, or how far it is when the deadline has passed.
  public func finalStatus(
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> QueueEntryStatus {
    try await betweenPeers(action("wait for"), peer) {
      let first = try await files.intentions().finalStatus(of: entry, until: deadline)
      guard first == .processed else { return first == .taken ? .stored : first }
      guard let stored = try await Blocking.run({ try self.storedEntry() }) else { return first }
      return try await files.sender(to: peer).finalStatus(of: stored, until: deadline)
    }
  }

  /// Waits until it has ended; see the `async` form. Blocks the calling thread.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func finalStatus(until deadline: ContinuousClock.Instant) throws -> QueueEntryStatus {
    try betweenPeers(action("wait for"), peer) {
      let first = try files.intentions().finalStatus(of: entry, until: deadline)
      guard first == .processed else { return first == .taken ? .stored : first }
      guard let stored = try storedEntry() else { return first }
      return try files.sender(to: peer).finalStatus(of: stored, until: deadline)
    }
  }

  // MARK: Ending it

  /// Ends it, even during copying, unless the peer already has it: it is cancelled or delivered,
  /// never both.
  ///
  /// - Returns: whether it is cancelled; false if the peer has it, or it has ended otherwise.
  /// - Throws: `WormholeError.Code.timedOut` if the process that copies it does not stop within ten
  ///   seconds; it is still given up as soon as that process continues. Or an error of the
  ///   container.
  /// - Complexity: as cancelling a message; in the middle of copying, an update of a value, and the
  ///   time for the piece being copied.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func cancel() throws -> Bool {
    try betweenPeers(action("take back"), peer) {
      let intentions = try files.intentions()
      if try intentions.cancel(entry) {
        finish(nil, isStored: false)
        return true
      }
      var status = try intentions.status(of: entry)
      if !status.isEnd { status = try giveUp(intentions) }
      guard status == .processed else { return status == .cancelled }
      return try cancelStored()
    }
  }

  /// Ends it; see the form without `async`.
  @discardableResult
  public func cancel() async throws -> Bool { try await Blocking.run { try self.cancel() } }

  private func giveUp(_ intentions: PlainSender) throws -> QueueEntryStatus {
    state.withLock { $0.isGivenUp = true }
    var obstacle: (any Error)?
    do { try files.note(id, isGivenUp: true) } catch { obstacle = error }
    // The process that was copying it may have ended. If this process was, it needs no note.
    files.begin()
    let status = try intentions.finalStatus(of: entry, until: .now + .seconds(10))
    guard status.isEnd else {
      throw obstacle
        ?? WormholeError(
          .timedOut, action("take back"), peer: peer,
          reason: "the process that copies it does not stop",
          remedy: "it is given up as soon as that process continues")
    }
    if obstacle == nil { try files.note(id, isGivenUp: false) }
    return status
  }

  private func cancelStored() throws -> Bool {
    let sender = try files.sender(to: peer)
    guard let stored = try storedEntry(), try sender.cancel(stored) else { return false }
    try removeAttachments(sender.queue)
    return true
  }

  // Removes the attachments that no entry names.
  private func removeAttachments(_ queue: PlainQueue) throws {
    for attachment in try queue.waitingAttachments(prefix: intention.attachmentPrefix) {
      try queue.removeAttachment(attachment.id)
    }
  }

  /// Removes the receipts: `fileTransfers()` no longer lists the transfer. No effect on a transfer
  /// that has not ended.
  public func removeReceipt() throws {
    guard try status().isEnd else { return }
    try betweenPeers(action("forget"), peer) {
      // The intention last, because the transfer is listed by it.
      let sender = try files.sender(to: peer)
      try removeAttachments(sender.queue)
      // Reading all receipts for each of many transfers would take quadratic time.
      let known = state.withLock(\.stored)
      for id in try known.map({ [$0] }) ?? receipts().map(\.id) { try sender.forget(id) }
      try files.intentions().forget(entry)
    }
  }
}
