public import Dispatch

extension Queue.Sender {
  /// Waits for the end of an entry.
  ///
  /// - Parameter deadline: until when to wait; already past means "as it is now".
  /// - Returns: how it ended; after the deadline, how it stands.
  /// - Throws: `AppGroupError`, for what the file system refuses.
  /// - Complexity: as `status(of:)` at the beginning and whenever something happened to the file that
  ///   it was stored in. One set of watches for all who wait with this sender; without watches to be
  ///   had, a look five times a second.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func end(
    of id: QueueEntryID, until deadline: ContinuousClock.Instant
  ) throws -> QueueEntryStatus {
    try reporting("wait for an entry of \"\(queue.name)\"", path: queue.path) {
      let first = try status(of: id)
      guard !first.isEnd, isAhead(deadline) else { return first }
      let waiter = try QueueEndWaiter(id, of: self)
      defer { waiter.end() }
      while true {
        let status = try status(of: id)
        guard !status.isEnd, isAhead(deadline) else { return status }
        waiter.latch.block(until: deadline)
      }
    }
  }

  /// Waits for the end of an entry; see the form without `async`. Cancelling the task ends the wait
  /// with `CancellationError`.
  ///
  /// - Parameter deadline: nil means as long as the task is not cancelled.
  public func end(
    of id: QueueEntryID, until deadline: ContinuousClock.Instant? = nil
  ) async throws -> QueueEntryStatus {
    let first = try await Blocking.run { try self.status(of: id) }
    guard !first.isEnd, isAhead(deadline) else { return first }
    let waiter = try await Blocking.run { try QueueEndWaiter(id, of: self) }
    defer { waiter.end() }
    while true {
      try Task.checkCancellation()
      let status = try await Blocking.run { try self.status(of: id) }
      guard !status.isEnd, isAhead(deadline) else { return status }
      await waiter.latch.suspend(until: deadline)
    }
  }

  private func isAhead(_ deadline: ContinuousClock.Instant?) -> Bool {
    deadline.map { ContinuousClock.now < $0 } ?? true
  }

  /// Tells how entries end, each once, also those that have ended already.
  ///
  /// - Parameters:
  ///   - ids: which; more can be added later.
  ///   - target: where the handler is called.
  ///   - handler: gets those that have ended since, each call in the order of sending; or why they
  ///     could not be looked at, which is tried again.
  /// - Returns: tells as long as it is kept and not cancelled.
  /// - Complexity: one set of watches, however many entries; whenever something happens to a file in
  ///   which some of them were stored, a look at that file.
  public func observeEnds(
    of ids: [QueueEntryID] = [], on target: DispatchQueue,
    _ handler: @escaping QueueEndObservation.Handler
  ) -> QueueEndObservation {
    let observation = QueueEndObservation(self, target, handler)
    observation.add(ids)
    return observation
  }
}

/// Who waits for the end of one entry.
private final class QueueEndWaiter: Sendable {
  let latch = WakeLatch()
  private let id: QueueEntryID
  private let sender: Queue.Sender
  private let token: QueueEndWatch.Token

  init(_ id: QueueEntryID, of sender: Queue.Sender) throws {
    self.id = id
    self.sender = sender
    token = try sender.ends.add(id.batch) { [latch] _ in latch.raise() }
  }

  func end() { sender.ends.remove(token, id.batch) }
}
