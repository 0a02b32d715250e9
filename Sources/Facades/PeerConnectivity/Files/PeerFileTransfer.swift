public import AppGroup
public import FoundationEssentials
public import PropertyLists

/// A file on its way to a peer: it outlives the processes of both sides. Thread-safe.
public final class PeerFileTransfer: Sendable {
  private let intention: FileIntention
  let entry: QueueEntryID
  let files: OutgoingFiles
  let process: FileProcess

  /// - Parameter entry: the intention's.
  init(_ intention: FileIntention, as entry: QueueEntryID, of files: OutgoingFiles) {
    self.intention = intention
    self.entry = entry
    self.files = files
    process = files.process(of: intention)
  }

  /// Names it among all transfers of the container; a program may keep it as text.
  public var id: String { intention.id }
  /// The peer that sends it.
  public var sender: String { files.name }
  /// The peer that gets it.
  public var peer: String { intention.peer }
  /// The file that was sent.
  public var source: URL { URL(filePath: intention.source, directoryHint: .notDirectory) }
  /// The metadata that was sent with it.
  public var metadata: PropertyListValue? { intention.metadata }

  private func action(_ verb: String) -> String { "\(verb) a file for \"\(peer)\"" }

  // MARK: Its status

  /// How far it is, or how it ended; `stored` while it waits to be copied and is copied, too. A failure of
  /// copying is `failed`, with its reason.
  ///
  /// - Throws: `PeerError`: an error of the container.
  /// - Complexity: opens and reads two small files; where another process has copied it, also every receipt
  ///   of this sender once.
  public func status() throws -> QueueEntryStatus {
    try betweenPeers(action("look for"), peer) {
      let status = try files.sender().status(of: entry)
      guard status == .processed else { return status == .taken ? .stored : status }
      guard let stored = try storedEntry() else { return .processed }
      return try files.sender(to: peer).status(of: stored)
    }
  }

  /// The entry that its peer gets; nil if there is none, or its receipt was removed.
  func storedEntry() throws -> QueueEntryID? {
    if let known = process.entry { return known }
    let receipts = try self.receipts()
    // A process that was stopped and taken over may have stored another, which names nothing and fails.
    let delivered = receipts.first {
      if case .failed = $0.status { false } else { true }
    }
    if receipts.count == 1 { process.entry = delivered?.id }
    if let entry = (delivered ?? receipts.last)?.id { return entry }
    // The sender was killed before it stored its receipt.
    return try files.sender(to: peer).queue.entry(
      of: files.name, attachmentPrefix: intention.attachmentPrefix)
  }

  private func receipts() throws -> [QueueReceipt] {
    try files.sender(to: peer).receipts().filter { FileNotice($0.payload)?.id == intention.id }
  }

  /// Waits until the content is safe in the container: from then on it outlives this process.
  ///
  /// - Throws: `PeerError`: `failed` with the reason, `cancelled`, `timedOut` for a file that expired. Any
  ///   other error is the reason that it is not stored yet, after this process has tried for ten seconds: it
  ///   waits in the container, and copying continues when something is sent under this name, or the next
  ///   session is active; `cancel()` takes it back.
  public func waitUntilStored() async throws {
    try confirmStored(
      await betweenPeers(action("store"), peer) {
        try await runSuspending { FileStoring(self, until: nil) }
      })
  }

  /// Waits until the content is safe in the container; blocks the calling thread.
  ///
  /// - Throws: as the form with `async`; also `timedOut` when the deadline has passed. The transfer
  ///   continues then.
  public func waitUntilStored(until deadline: ContinuousClock.Instant) throws {
    try confirmStored(
      betweenPeers(action("store"), peer) { try FileStoring(self, until: deadline).run() })
  }

  private func confirmStored(_ status: QueueEntryStatus) throws(PeerError) {
    let (code, reason): (PeerError.Code, String)
    switch status {
    case .processed: return
    case .stored, .taken: (code, reason) = (.timedOut, "the time has passed, and it continues")
    case .cancelled: (code, reason) = (.cancelled, "it was cancelled")
    case .failed(let why): (code, reason) = (.failed, why)
    default: (code, reason) = (.timedOut, "it has expired")
    }
    throw PeerError(code, action("store"), peer: peer, reason: reason)
  }

  /// Waits until it has ended: processed, cancelled, expired or failed.
  ///
  /// - Parameter deadline: until when to wait; without one as long as it takes.
  /// - Returns: how it ended, or how far it is when the deadline has passed.
  public func finalStatus(
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> QueueEntryStatus {
    try await betweenPeers(action("wait for"), peer) {
      try await runSuspending { FileEnding(self, until: deadline) }
    }
  }

  /// Waits until it has ended; see the form with `async`. Blocks the calling thread.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func finalStatus(until deadline: ContinuousClock.Instant) throws -> QueueEntryStatus {
    try betweenPeers(action("wait for"), peer) {
      try FileEnding(self, until: deadline).run()
    }
  }

  // MARK: Ending it

  /// Ends it, also in the middle of copying, unless the peer has it already: it is cancelled or delivered,
  /// never both. A file that was to be moved is where it was, unless something else lies there by now.
  ///
  /// - Returns: whether it is cancelled; false when the peer has it, or it has ended otherwise.
  /// - Throws: `PeerError`: `timedOut` when the process that copies it does not stop within ten seconds; it
  ///   is given up all the same as soon as that process continues. Or an error of the container.
  /// - Complexity: as cancelling a message; in the middle of copying, an update of a value, and the time for
  ///   the piece that is being copied.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func cancel() throws -> Bool {
    try betweenPeers(action("take back"), peer) {
      let intentions = try files.sender()
      if try intentions.cancel(entry) {
        process.finish(nil, isStored: false)
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

  private func giveUp(_ intentions: Queue.Sender) throws -> QueueEntryStatus {
    process.giveUp()
    var obstacle: (any Error)?
    do { try files.note(id, isGivenUp: true) } catch { obstacle = error }
    // The process that was copying it may have ended. If it is this one, it needs no note.
    files.begin()
    let status = try intentions.finalStatus(of: entry, until: .now + .seconds(10))
    guard status.isEnd else {
      throw obstacle
        ?? PeerError(
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

  // Those that no entry names any more.
  private func removeAttachments(_ queue: Queue) throws {
    for attachment in try queue.waitingAttachments(prefix: intention.attachmentPrefix) {
      if intention.options.isMoved, attachment.isWhole {
        // Back to where it was, unless something else lies there.
        _ = try queue.returnAttachment(attachment.id, to: intention.source)
      }
      try queue.removeAttachment(attachment.id)
    }
  }

  /// Removes the notes of how it ended: `fileTransfers()` lists it no more. No effect on a transfer that has
  /// not ended.
  ///
  /// - Throws: `PeerError`: an error of the container.
  public func removeReceipt() throws {
    guard try status().isEnd else { return }
    try betweenPeers(action("forget"), peer) {
      // The intention last, because it lists the transfer.
      let sender = try files.sender(to: peer)
      try removeAttachments(sender.queue)
      for receipt in try receipts() { try sender.forget(receipt.id) }
      try files.sender().forget(entry)
    }
  }

  // MARK: Progress

  /// How much is copied; all of it once it is stored.
  public var progress: PeerFileProgress {
    if let progress = process.progress { return progress }
    do {
      return try lookedUpProgress()
    } catch {
      // The container cannot be read now: nothing is known, and `status()` throws the reason.
      return PeerFileProgress(completedBytes: 0, totalBytes: intention.size)
    }
  }

  // Copied by another process, or an earlier one.
  private func lookedUpProgress() throws -> PeerFileProgress {
    let total = intention.size
    if try files.sender().status(of: entry) == .processed {
      return PeerFileProgress(completedBytes: total, totalBytes: total)
    }
    let incoming = try files.sender(to: peer).queue.incomingAttachments().first {
      $0.id.hasPrefix(intention.attachmentPrefix)
    }
    return PeerFileProgress(completedBytes: incoming?.completedBytes ?? 0, totalBytes: total)
  }

  /// Calls a handler during the copying, a few times a second at most, and at its end; on a queue of
  /// the transfer's own. Where another process copies, the handler is called at the end only.
  ///
  /// - Returns: the observation; it ends when it is cancelled or released.
  public func observeProgress(
    _ handler: @escaping @Sendable (PeerFileProgress) -> Void
  ) -> Observation {
    let observer = FileProcess.Observer(handler)
    if process.observe(observer) {
      Task { [self] in
        do {
          // In whichever process it is copied; this one has called the handler already where it was here.
          _ = try await files.sender().finalStatus(of: entry)
          let last = try await Blocking.run { self.progress }
          if process.progress == nil { process.advance(to: last.completedBytes) }
          process.finish(nil, isStored: last.fraction == 1)
        } catch {
          // The container is gone: there is no end to be told of.
          return
        }
      }
    } else {
      process.tell([observer], progress)
    }
    return Observation(delivery: observer)
  }
}
