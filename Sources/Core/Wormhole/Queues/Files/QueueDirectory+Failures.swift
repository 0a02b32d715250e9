import WormholePropertyLists
import WormholeSystem

/// `failed/<batch>.<index>` is a batch of this one entry, with a `reason` beside its `entries`. So
/// sending it again is a rename to a new name in `pending/`. A file that came with it waits in
/// `failed/attachment-<id>`.
///
/// **What a crash leaves.** The entry is kept first, then its file is moved, and then it ends like
/// any other failed entry. A consumer that finds a kept entry that has not ended completes these
/// steps.
extension QueueDirectory {
  package static func failedAttachmentPath(_ id: String) -> String {
    failed + "/" + AttachmentPlace.takenPrefix + id
  }

  /// - Returns: nil if it does not exist or cannot be read.
  package func failure(_ id: QueueEntryID) throws -> QueueFailure? {
    let path = Self.failedPath(id)
    do {
      guard let bytes = try read(path),
        let payload = try Batch(bytes: bytes, count: 1).entries[0].payload
      else { return nil }
      let reason = try PropertyListValue(bytes: bytes)["reason"]?.stringValue
      return QueueFailure(
        id: id, payload: payload, reason: reason ?? "no reason was given",
        date: try fileStatus(path).modified)
    } catch is Batch.Unreadable {
      return nil
    } catch let error as Errno where error == .noSuchFile {
      // Sent again or removed just now.
      return nil
    }
  }

  /// Keeps an entry that fails, and its file.
  ///
  /// - Throws: `.noSuchFile` if its consumer was replaced.
  package func keep(
    _ entry: Batch.Entry, _ id: QueueEntryID, reason: String, of consumer: String
  ) throws {
    guard let payload = entry.payload else { return }
    let list: PropertyListValue = .array([Batch.Entry(payload: payload).value])
    let bytes = try PropertyListValue.dictionary(["entries": list, "reason": .string(reason)])
      .binaryBytes()
    try makeDirectory(Self.failed)
    _ = try tolerating(
      [.alreadyExists], storeNote(bytes, as: Self.failedPath(id), from: consumer))
    if let attachment = payload.attachmentID {
      try moveOnce(
        AttachmentPlace.takenPath(attachment, by: consumer),
        to: Self.failedAttachmentPath(attachment))
    }
  }

  /// Moves a file that may have been moved already.
  package func moveOnce(_ path: String, to other: String) throws(Errno) {
    _ = try tolerating([.noSuchFile, .alreadyExists], move(path, to: other, .keep))
  }

  /// Moves a file that other processes may move to other names at the same moment.
  ///
  /// If a move takes two steps (`RenameMode.keep`), the lock admits one process; the others find
  /// nothing.
  ///
  /// - Throws: `.noSuchFile` if another process moves it, or has; `.alreadyExists` if the name is taken.
  package func moveAlone(_ path: String, to other: String) throws(Errno) {
    // Open for writing, or NFS grants no such lock (flock(2)).
    let file = try openFile(path, [.readWrite, .nonBlocking])
    guard try file.tryLock(.exclusive) else { throw .noSuchFile }
    try move(path, to: other, .keep)
  }
}
