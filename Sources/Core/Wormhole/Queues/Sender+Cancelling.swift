extension Queue.Sender {
  /// Takes an entry back, unless a consumer has taken it already: it is cancelled or delivered,
  /// never both.
  ///
  /// - Parameters:
  ///   - id: the entry.
  ///   - deadline: how long to wait for other cancelling processes; by default 10 seconds from now.
  /// - Returns: whether it is cancelled; false if it was taken, or has ended otherwise.
  /// - Throws: `AppGroupError`: `timedOut`, naming the process that cancels, or errors of the file
  ///   system (some file systems cannot exchange two files). The entry is then unchanged.
  /// - Complexity: the file of the entry is rewritten, with two fsyncs.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func cancel(
    _ id: QueueEntryID, until deadline: ContinuousClock.Instant? = nil
  ) throws -> Bool {
    try store.cancel(id, until: deadline)
  }

  /// Takes an entry back; see the form without `async`.
  @discardableResult
  public func cancel(
    _ id: QueueEntryID, until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Bool {
    try await store.cancel(id, until: deadline)
  }
}
