import Containers
import Monitoring
import SystemCalls

extension Queue.Sender {
  /// Takes an entry back, unless a consumer has taken it already: it is cancelled or delivered,
  /// never both.
  ///
  /// - Parameter deadline: how long to wait for others that cancel; by default 10 seconds from now.
  /// - Returns: whether it is cancelled; false if it was taken, or has ended otherwise.
  /// - Throws: `AppGroupError`: `timedOut`, naming the process that cancels, or errors of the file
  ///   system (some file systems cannot exchange two files). The entry is then where it was.
  /// - Complexity: the file that it was stored in is rewritten, with two fsyncs.
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

  /// Runs a body under the queue's lease.
  func leased<Result: Sendable>(
    until deadline: ContinuousClock.Instant? = nil,
    _ work: @escaping @Sendable (Lease) throws -> Result
  ) -> sending Change<Result> {
    let value = Value(
      container: queue.container, identifier: queue.name, kind: queue.place.directory.kind)
    return Change(value, .init(until: deadline), work)
  }
}
