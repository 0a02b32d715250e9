import Containers
import SystemCalls

extension Queue.Sender {
  /// Returns the status of an entry, including one that was sent before this process began.
  ///
  /// - Throws: `AppGroupError` for errors of the file system.
  /// - Complexity: opens and reads the file that the entry was stored in, if it is still there.
  public func status(of id: QueueEntryID) throws -> QueueEntryStatus {
    try reporting("look for an entry of \"\(queue.name)\"", path: queue.path) {
      guard let place = try queue.place.directory.open() else { return .processed }
      return try queue.place.status(of: id, at: place)
    }
  }

  /// Returns the entries of this sender that were not processed and not cleared, and how they
  /// ended, in the order in which they were sent.
  ///
  /// - Throws: `AppGroupError` for errors of the file system.
  /// - Complexity: one listing, and one file read for each.
  public func outcomes() throws -> [QueueOutcome] {
    try reporting("look for outcomes of \"\(queue.name)\"", path: queue.path) {
      guard let place = try queue.place.directory.open() else { return [] }
      let entries = try SharedContainer.entries(QueueDirectory.outcomes, at: place.rawValue) ?? []
      let ids = entries.compactMap { OutcomeFile.id($0.name.text) }
        .filter { $0.sender.utf8.elementsEqual(name.utf8) }
        .sorted { ($0.batch, $0.index) < ($1.batch, $1.index) }
      // A cancelled entry that is not yet out of the way is reported once it is.
      return try ids.compactMap { id in
        let status = try queue.place.status(of: id, at: place)
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
  func status(
    of id: QueueEntryID, at place: borrowing FileDescriptor
  ) throws -> QueueEntryStatus {
    try statuses(of: id.batch, [id.index], at: place)[id.index] ?? .processed
  }
}
