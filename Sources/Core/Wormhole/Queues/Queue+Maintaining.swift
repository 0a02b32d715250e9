import WormholeSystem

/// The outstanding entries of a queue, for people and programs that maintain it.
extension Queue {
  /// Returns all taken and waiting entries of all senders: first the taken ones, then the others in
  /// their order of delivery.
  ///
  /// Consumers continue meanwhile, so a listed entry may already have ended.
  ///
  /// - Parameter limit: How many waiting entries are enough; by default all. A few more may be
  ///   returned, because entries that were stored together are read together.
  /// - Throws: `AppGroupError` for errors of the file system. Unreadable entries are left out.
  /// - Complexity: Four listings or more, and reading each file that is returned.
  public func outstanding(limit: Int = .max) throws -> [QueueReceipt] {
    let found = try attempt("look for entries of") {
      try store.unfinished(of: nil, limit: limit)
    }
    let taken = found.filter { $0.status == .taken }.sorted { $0.id.isBefore($1.id) }
    return taken + found.filter { $0.status == .stored }.sorted { $0.id.precedes($1.id) }
  }

  /// Waits for the first use of a queue that was never used, and creates nothing: neither a name
  /// nor a registration.
  ///
  /// - Parameters:
  ///   - deadline: How long to wait; a past deadline means "look once".
  ///   - willWait: Called before each wait.
  /// - Returns: Whether the queue was ever used.
  /// - Throws: `AppGroupError` for errors of the file system. Waits for a removed container.
  package func awaitFirstUse(
    until deadline: ContinuousClock.Instant, willWait: () -> Void
  ) throws -> Bool {
    let queue = limited(until: deadline)
    while true {
      let latch = WakeLatch()
      var watch: (any Cancelling)?
      var pause = deadline
      do {
        watch = try attempt("wait for") { try queue.store.watchFirstUse { latch.raise() } }
        if watch == nil { return true }
      } catch let error as AppGroupError where error.code == .containerMissing {
        pause = min(deadline, .now + ContainerRoot.recheck)
      }
      defer { watch?.cancel() }
      guard ContinuousClock.now < deadline else { return false }
      willWait()
      latch.block(until: pause)
    }
  }

  /// Cancels all waiting entries, including delayed ones: they are not delivered, and their senders
  /// learn that they were cancelled. Taken entries stay with their consumer.
  ///
  /// - Parameter deadline: How long to wait for other processes that cancel; by default 10 seconds for
  ///   each step.
  /// - Returns: The number of entries that this call has cancelled.
  /// - Throws: `AppGroupError`: as `Sender.cancel`. Earlier cancellations remain.
  /// - Complexity: One or two listings; for each file the cost of `Sender.cancel`. On etcd two round
  ///   trips for each file.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func cancelAll(until deadline: ContinuousClock.Instant? = nil) throws -> Int {
    try attempt("cancel what waits in") { try store.cancelAll(until: deadline) }
  }

  /// Cancels all waiting entries; see the form without `async`.
  @discardableResult
  public func cancelAll(until deadline: ContinuousClock.Instant? = nil) async throws -> Int {
    try await Blocking.run { try self.cancelAll(until: deadline) }
  }

  // MARK: Failures

  /// Returns the failed entries that were kept, in the order of sending.
  ///
  /// - Throws: `AppGroupError` for errors of the file system. Unreadable entries are left out.
  /// - Complexity: one listing, and one file read for each.
  public func failures() throws -> [QueueFailure] {
    try attempt("look for what has failed in") { try store.failures() }
  }

  /// Sends a failed entry that was kept again, as a new entry of the same sender and priority: with
  /// another id, and without the key, the expiry, the delay and the receipt of the original, whose
  /// outcome does not change.
  ///
  /// - Returns: the new entry's id; nil if the failed entry no longer exists.
  /// - Throws: `AppGroupError` for errors of the file system; then the entry is still kept.
  /// - Complexity: some cheap calls and one rename.
  public func retry(_ id: QueueEntryID) throws -> QueueEntryID? {
    try attempt("send again what has failed in") { try store.retry(id) }
  }

  /// Removes a failed entry that was kept, and the file that came with it.
  ///
  /// - Returns: false if the entry no longer exists.
  /// - Throws: `AppGroupError` for errors of the file system.
  @discardableResult
  public func forgetFailure(_ id: QueueEntryID) throws -> Bool {
    try attempt("forget what has failed in") { try store.forgetFailure(id) }
  }

  // MARK: Care

  /// Removes expired records of all senders.
  ///
  /// - Parameter later: For tests: the time by which the clock is ahead.
  /// - Returns: the removed paths.
  package func expire(nanosecondsLater later: UInt64 = 0) throws -> [String] {
    try store.expire(later: later)
  }

  /// Removes leftovers of dead senders and consumers, without disturbing live ones.
  package func sweep() throws { try store.sweep() }
}

extension QueueEntryID {
  /// Whether it is to be delivered before another entry.
  fileprivate func precedes(_ other: QueueEntryID) -> Bool {
    batch == other.batch ? index < other.index : batch.precedes(other.batch)
  }
}
