package import WormholeSystem

extension Queue.Sender {
  /// Waits for the end of an entry.
  ///
  /// - Parameters:
  ///   - id: the entry.
  ///   - deadline: how long to wait; a past deadline means "its status now".
  /// - Returns: how it ended; after the deadline, its current status.
  /// - Throws: `AppGroupError` for errors of the file system.
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
}

/// One caller's wait for the end of an entry.
package final class QueueEndWait: Waiting {
  private let id: QueueEntryID
  private let sender: Queue.Sender
  private let deadline: ContinuousClock.Instant?
  private let latch = WakeLatch()
  private var isWatching = false

  /// - Parameter deadline: how long to wait; nil means without limit.
  package init(
    for id: QueueEntryID, of sender: Queue.Sender, until deadline: ContinuousClock.Instant?
  ) {
    self.id = id
    self.sender = sender
    self.deadline = deadline
  }

  deinit { if isWatching { sender.ends.remove(latch, id.batch) } }

  package func step() throws -> WaitingStep<QueueEntryStatus> {
    try reporting("wait for an entry of \"\(sender.queue.name)\"", path: sender.queue.path) {
      while true {
        let status = try sender.status(of: id)
        if status.isEnd || deadline.map({ $0 <= .now }) == true { return .done(status) }
        guard !isWatching else { return .wait(for: latch, until: deadline) }
        // Most entries have ended already, and are not watched. Later changes are reported.
        try sender.ends.add(latch, id.batch)
        isWatching = true
      }
    }
  }
}
