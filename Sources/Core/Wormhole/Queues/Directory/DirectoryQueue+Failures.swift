import WormholePropertyLists
import WormholeSystem

extension DirectoryQueue {
  func failures() throws -> [QueueFailure] {
    guard let place = try queue.open() else { return [] }
    return try place.ids(in: QueueDirectory.failed).compactMap { try place.failure($0) }
  }

  func retry(_ id: QueueEntryID) throws -> QueueEntryID? {
    guard let place = try queue.open(), let failure = try place.failure(id) else { return nil }
    // Its consumer may have died before recording it.
    try place.note(.failed(reason: failure.reason), of: id, from: nil)
    if let attachment = failure.payload.attachmentID {
      try place.moveOnce(
        QueueDirectory.failedAttachmentPath(attachment), to: AttachmentPlace.path(attachment))
    }
    return try BatchOutlet(queue, id.batch.sender, limits: .standard)
      .adopt(QueueDirectory.failedPath(id), id.priority)
  }

  func forgetFailure(_ id: QueueEntryID) throws -> Bool {
    guard let place = try queue.open() else { return false }
    if let attachment = try place.failure(id)?.payload.attachmentID {
      // In the second place if a process that was about to send it again was killed.
      for path in [
        QueueDirectory.failedAttachmentPath(attachment), AttachmentPlace.path(attachment),
      ] { try place.removeAttachmentDirectory(path) }
    }
    return try place.discard(QueueDirectory.failedPath(id))
  }
}
