extension Queue.Sender {
  /// Returns the status of an entry, including one that was sent before this process began.
  ///
  /// - Throws: `AppGroupError` for errors of the file system.
  /// - Complexity: opens and reads the entry's file, if it still exists.
  public func status(of id: QueueEntryID) throws -> QueueEntryStatus {
    try reporting("look for an entry of \"\(queue.name)\"", path: queue.path) {
      try store.status(of: id)
    }
  }

  /// Returns an entry's original content and its status, as long as the content exists: the entry
  /// waits, is taken, or has a receipt that is not cleared.
  ///
  /// - Returns: nil if it no longer exists anywhere.
  /// - Throws: `AppGroupError` for errors of the file system.
  /// - Complexity: opens and reads up to three files, and then as `status(of:)`.
  public func receipt(of id: QueueEntryID) throws -> QueueReceipt? {
    try reporting("look for an entry of \"\(queue.name)\"", path: queue.path) {
      try store.receipt(of: id)
    }
  }

  /// Returns the entries of this sender that were not processed and not cleared, and how they
  /// ended, in the order in which they were sent.
  ///
  /// - Throws: `AppGroupError` for errors of the file system.
  /// - Complexity: one listing, and one file read for each.
  public func outcomes() throws -> [QueueOutcome] {
    try reporting("look for outcomes of \"\(queue.name)\"", path: queue.path) {
      try store.outcomes(of: component)
    }
  }
}

/// The outcome of an entry that was not processed.
///
/// ```swift
/// let sender = try container.queue("jobs").sender("box office")
/// for outcome in try sender.outcomes() {
///   if case .failed(let reason) = outcome.status { print(outcome.id, reason) }
/// }
/// ```
public struct QueueOutcome: Sendable, Hashable {
  /// The entry's id.
  public let id: QueueEntryID
  /// How it ended.
  public let status: QueueEntryStatus

  package init(id: QueueEntryID, status: QueueEntryStatus) {
    self.id = id
    self.status = status
  }
}
