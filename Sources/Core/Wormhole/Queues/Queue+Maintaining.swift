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
    let found = try reporting("look for entries of \"\(name)\"", path: path) {
      try store.unfinished(limit: limit)
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
        watch = try reporting("wait for \"\(name)\"", path: path) {
          try queue.store.watchFirstUse { latch.raise() }
        }
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
    try reporting("cancel what waits in \"\(name)\"", path: path) {
      try store.cancelAll(until: deadline)
    }
  }

  /// Cancels all waiting entries; see the form without `async`.
  @discardableResult
  public func cancelAll(until deadline: ContinuousClock.Instant? = nil) async throws -> Int {
    try await Blocking.run { try self.cancelAll(until: deadline) }
  }
}

extension QueueEntryID {
  /// Whether it is to be delivered before another entry.
  fileprivate func precedes(_ other: QueueEntryID) -> Bool {
    batch == other.batch ? index < other.index : batch.precedes(other.batch)
  }
}
