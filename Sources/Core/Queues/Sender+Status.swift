import Containers
import Entries
import SystemCalls

extension Queue.Sender {
  /// Returns the status of an entry, including one that was sent before this process began.
  ///
  /// - Throws: `AppGroupError` for errors of the file system.
  /// - Complexity: opens and reads the file that the entry was stored in, if it is still there.
  public func status(of id: QueueEntryID) throws -> QueueEntryStatus {
    try reporting("look for an entry of \"\(queue.name)\"", path: queue.path) {
      try queue.open()?.status(of: id) ?? .processed
    }
  }

  /// Returns an entry as it was sent, and its status, as long as its content exists anywhere: it
  /// waits, is taken, or has a receipt that is not cleared.
  ///
  /// - Returns: nil if it no longer exists anywhere.
  /// - Throws: `AppGroupError` for errors of the file system.
  /// - Complexity: opens and reads up to three files, and then as `status(of:)`.
  public func receipt(of id: QueueEntryID) throws -> QueueReceipt? {
    try reporting("look for an entry of \"\(queue.name)\"", path: queue.path) {
      guard let place = try queue.open(), let entry = try place.entry(id),
        let payload = entry.payload
      else { return nil }
      return QueueReceipt(
        id: id, payload: payload, key: entry.key, status: try place.status(of: id))
    }
  }

  /// Returns the entries of this sender that were not processed and not cleared, and how they
  /// ended, in the order in which they were sent.
  ///
  /// - Throws: `AppGroupError` for errors of the file system.
  /// - Complexity: one listing, and one file read for each.
  public func outcomes() throws -> [QueueOutcome] {
    try reporting("look for outcomes of \"\(queue.name)\"", path: queue.path) {
      guard let place = try queue.open() else { return [] }
      let ids = try place.ids(in: QueueDirectory.outcomes)
        .filter { $0.sender.utf8.elementsEqual(name.utf8) }
      // A cancelled entry that is not yet out of the way is reported once it is.
      return try ids.compactMap { id in
        let status = try place.status(of: id)
        return status.isEnd && status != .processed ? .init(id: id, status: status) : nil
      }
    }
  }
}

/// How an entry ended that was not processed.
public struct QueueOutcome: Sendable, Hashable {
  /// The entry's id.
  public let id: QueueEntryID
  /// How it ended.
  public let status: QueueEntryStatus
}

extension QueueDirectory {
  /// Returns the status of an entry.
  func status(of id: QueueEntryID) throws -> QueueEntryStatus {
    try statuses(of: id.batch, [id.index])[id.index] ?? .processed
  }

  // Its receipt first, which does not move.
  fileprivate func entry(_ id: QueueEntryID) throws -> Batch.Entry? {
    if let entry = try entry(id, in: Self.sent),
      try !numbers(Self.sentPath(id.batch) + Self.forgottenSuffix).contains(id.index)
    {
      return entry
    }
    return try search { part in
      guard let entry = try entry(id, in: part) else { return nil }
      let isSettled =
        try part != Self.pending && settled(part + "/" + id.batch.text).contains(id.index)
      return isSettled ? nil : entry
    }
  }

  /// - Returns: nil also for a withdrawn entry.
  private func entry(_ id: QueueEntryID, in part: String) throws -> Batch.Entry? {
    guard let entry = try batch(id.batch, in: part)?.entries[id.index], entry.payload != nil
    else { return nil }
    return entry
  }
}
