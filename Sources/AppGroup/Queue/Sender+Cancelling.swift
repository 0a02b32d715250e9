import SystemCalls

extension Queue.Sender {
  /// Takes an entry back, unless a consumer has taken it already: it is cancelled or delivered,
  /// never both.
  ///
  /// - Parameter deadline: until when to wait for others who cancel; by default 10 seconds from now.
  /// - Returns: whether it is cancelled; false when it was taken, or has ended otherwise.
  /// - Throws: `AppGroupError`: `timedOut`, naming who cancels, or what the file system refuses
  ///   (some do not know how to exchange two files). The entry is where it was then.
  /// - Complexity: the file that it was stored in is written anew, with two fsyncs.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func cancel(
    _ id: QueueEntryID, until deadline: ContinuousClock.Instant? = nil
  ) throws -> Bool {
    try cancellation(id, deadline).run()
  }

  /// Takes an entry back; see the form without `async`.
  @discardableResult
  public func cancel(
    _ id: QueueEntryID, until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Bool {
    try await runSuspending { self.cancellation(id, deadline) }
  }

  private func cancellation(
    _ id: QueueEntryID, _ deadline: ContinuousClock.Instant?
  ) -> sending Change<Bool> {
    let queue = queue
    return leased(until: deadline) { lease in
      guard let place = try queue.place.directory.open() else { return false }
      return try queue.place.withdraw(
        [id.index], of: id.batch, as: .cancelled, lease, at: place)
    }
  }

  /// Does something under the queue's lease.
  func leased<Result: Sendable>(
    until deadline: ContinuousClock.Instant? = nil, _ work: @escaping Change<Result>.Work
  ) -> sending Change<Result> {
    let value = Value(
      container: queue.container, identifier: queue.name, kind: queue.place.directory.kind)
    return Change(value, .init(deadline: deadline ?? .now + Value.standardWait)) { _ in work }
  }
}
