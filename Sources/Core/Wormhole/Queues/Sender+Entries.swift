package import WormholeSystem

extension QueueSender {
  // MARK: Looking

  /// Returns the status of an entry, including one that was sent before this process began.
  ///
  /// - Throws: `WormholeError` for errors of the file system.
  /// - Complexity: opens and reads the entry's file, if it still exists.
  public func status(of id: QueueEntryID) throws -> QueueEntryStatus {
    try queue.attempt("look for an entry of") { try store.status(of: id) }
  }

  /// Returns an entry's original content and its status, as long as the content exists: the entry
  /// waits, is taken, or has a receipt that is not cleared.
  ///
  /// - Returns: nil if it no longer exists anywhere.
  /// - Throws: `WormholeError` for errors of the file system.
  /// - Complexity: opens and reads up to three files, and then as `status(of:)`.
  public func receipt(of id: QueueEntryID) throws -> QueueReceipt? {
    try queue.attempt("look for an entry of") { try store.receipt(of: id) }
  }

  /// Returns the entries of this sender that were not processed and not cleared, and how they
  /// ended, in the order in which they were sent.
  ///
  /// - Throws: `WormholeError` for errors of the file system.
  /// - Complexity: one listing, and one file read for each.
  public func outcomes() throws -> [QueueOutcome] {
    try queue.attempt("look for outcomes of") { try store.outcomes(of: component) }
  }

  /// Returns all entries that were sent under this name with a receipt and are not cleared, in the
  /// order in which they were sent, by all processes and objects that use the name.
  ///
  /// - Throws: `WormholeError` for errors of the file system. A receipt that can no longer be read,
  ///   for example after a loss of power, is left out.
  /// - Complexity: one listing; for each file the same as `status(of:)`, and reading it.
  public func receipts() throws -> [QueueReceipt] {
    try queue.attempt("look for receipts of") { try store.receipts(of: component) }
  }

  /// Returns the receipts, and all waiting or taken entries that were sent under this name without
  /// one, in the order in which they were sent.
  ///
  /// - Throws: as `receipts()`.
  /// - Complexity: as `receipts()`; three listings, and reading each waiting or taken file of this
  ///   sender.
  public func outstanding() throws -> [QueueReceipt] {
    let receipts = try receipts()
    let known = Set(receipts.map(\.id))
    let others = try queue.attempt("look for entries of") {
      try store.unfinished(of: component, limit: .max)
    }
    return (receipts + others.filter { !known.contains($0.id) })
      .ordered { $0.id.isBefore($1.id) }
  }

  /// Waits for the end of an entry.
  ///
  /// - Parameters:
  ///   - id: the entry.
  ///   - deadline: how long to wait; a past deadline means "its status now".
  /// - Returns: how it ended; after the deadline, its current status.
  /// - Throws: `WormholeError` for errors of the file system.
  /// - Complexity: as `status(of:)` at the beginning and after each change of the entry's file. All
  ///   callers that wait with this sender share one set of watches; without watches, a look five
  ///   times a second.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func finalStatus(
    of id: QueueEntryID, until deadline: ContinuousClock.Instant
  ) throws -> QueueEntryStatus {
    try QueueEndWait(for: id, of: self, until: deadline).run()
  }

  /// Waits for the end of an entry; see the form without `async`. Cancelling the task ends the wait
  /// with `CancellationError`.
  ///
  /// - Parameters:
  ///   - id: the entry.
  ///   - deadline: nil means until the task is cancelled.
  public func finalStatus(
    of id: QueueEntryID, until deadline: ContinuousClock.Instant? = nil
  ) async throws -> QueueEntryStatus {
    try await runSuspending { QueueEndWait(for: id, of: self, until: deadline) }
  }

  // MARK: Changing

  /// Takes an entry back, unless a consumer has taken it already: it is cancelled or delivered,
  /// never both.
  ///
  /// - Parameters:
  ///   - id: the entry.
  ///   - deadline: how long to wait for other cancelling processes; by default 10 seconds from now.
  /// - Returns: whether it is cancelled; false if it was taken, or has ended otherwise.
  /// - Throws: `WormholeError.Code.timedOut`, naming the process that cancels, or errors of the
  ///   file system (some file systems cannot exchange two files). The entry is then unchanged.
  /// - Complexity: the file of the entry is rewritten, with two fsyncs.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func cancel(
    _ id: QueueEntryID, until deadline: ContinuousClock.Instant? = nil
  ) throws -> Bool {
    try store.cancellation(of: id, until: deadline).run() > 0
  }

  /// Takes an entry back; see the form without `async`. Cancelling the task ends the wait with
  /// `CancellationError`, and then the entry is unchanged.
  @discardableResult
  public func cancel(
    _ id: QueueEntryID, until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Bool {
    try await runSuspending { self.store.cancellation(of: id, until: deadline) } > 0
  }

  /// Clears an entry whose outcome the sender has dealt with: removes its receipt and, if it was
  /// not processed, the note of its outcome. It then counts as processed.
  ///
  /// An entry that has not ended yet is still delivered, and if it then fails, a note of that
  /// stays. Without this call, receipts and their notes stay forever, except for receipts with a
  /// term; notes of entries sent without a receipt stay for a day.
  ///
  /// - Throws: `WormholeError` for errors of the file system.
  /// - Complexity: two unlinks; if several entries are in one file, it is read, and the last one
  ///   removes it.
  public func forget(_ id: QueueEntryID) throws {
    try queue.attempt("forget an entry of") { try store.forget(id) }
  }
}

/// One caller's wait for the end of an entry.
package final class QueueEndWait: Waiting {
  private let id: QueueEntryID
  private let queue: PlainQueue
  private let ends: QueueEnds
  private let deadline: ContinuousClock.Instant?
  /// The sender's queue for a caller with this deadline.
  private let store: any QueueStore
  private let latch = WakeLatch()
  private var isWatching = false

  /// - Parameter deadline: how long to wait; nil means without limit.
  package init(
    for id: QueueEntryID, of sender: QueueSender<some Any>, until deadline: ContinuousClock.Instant?
  ) {
    self.id = id
    queue = sender.queue.plain
    ends = sender.ends
    self.deadline = deadline
    store = queue.limited(until: deadline.map(CallLimit.callDeadline)).store
  }

  deinit { if isWatching { ends.remove(latch, id.batch) } }

  package func step() throws -> WaitingStep<QueueEntryStatus> {
    try queue.attempt("wait for an entry of") {
      while true {
        let status = try store.status(of: id)
        if status.isEnd || deadline.hasPassed { return .done(status) }
        guard !isWatching else { return .wait(for: latch, until: deadline) }
        // Most entries have ended already, and are not watched. Later changes are reported.
        try ends.add(latch, id.batch, watching: store)
        isWatching = true
      }
    }
  }
}
