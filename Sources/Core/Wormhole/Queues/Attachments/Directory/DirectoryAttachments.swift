import WormholePropertyLists
import WormholeSystem

/// The attachments of a queue in a directory; see `AttachmentPlace`.
struct DirectoryAttachments: AttachmentStore {
  let queue: Queue

  func location(of id: String) -> String {
    "\(queue.directory.path)/\(AttachmentPlace.path(id))/\(AttachmentPlace.content)"
  }

  func stage(
    _ id: String, bytes: Int64, sender: String, continuing old: [String], for entry: QueueEntry?
  ) throws -> any AttachmentStage {
    try DirectoryStage(id, queue, sender: sender, for: entry?.batch)
  }

  func waiting(prefix: String) throws -> [Queue.WaitingAttachment] {
    try withPlaceIfAny { place in
      try place.attachmentDirectories().filter { $0.hasPrefix(prefix) }.map { id in
        let content = AttachmentPlace.path(id) + "/" + AttachmentPlace.content
        return .init(id: id, isWhole: try place.exists(content))
      }
    } ?? []
  }

  func rename(_ id: String, to newID: String) throws -> Int64? {
    try withPlaceIfAny { place in
      let path = AttachmentPlace.path(newID)
      guard try ifPresent(place.move(AttachmentPlace.path(id), to: path, .keep)) != nil else {
        return nil
      }
      return try ifPresent(place.fileStatus(path + "/" + AttachmentPlace.content).size)
    } ?? nil
  }

  func remove(_ id: String) throws {
    try withPlaceIfAny { place in
      try place.removeAttachmentDirectory(AttachmentPlace.path(id))
    }
  }

  func giveBack(_ id: String, to path: String) throws -> Bool {
    try withPlaceIfAny { place in
      let content = AttachmentPlace.path(id) + "/" + AttachmentPlace.content
      do throws(Errno) {
        try place.move(content, to: path, at: Directory.current, .keep)
        return true
      } catch {
        switch error {
        case .noSuchFile, .alreadyExists, .accessDenied: return false
        case .crossesDevices: break
        default: throw error
        }
      }
      let source = try place.openFile(content, [.readOnly, .nonBlocking])
      guard try source.status().kind == .regular else { return false }
      return try giveBack(to: path) { file in
        var copy = ContentCopy(check: {})
        try copy.copy(source, source.status(), to: file)
        return true
      }
    } ?? false
  }

  func entry(of sender: String, attachmentPrefix prefix: String) throws -> QueueEntryID? {
    return try withPlaceIfAny { place in
      try place.search { part in
        for batch in try place.batches(part) ?? [] where batch.sender == sender {
          let ids = try place.attachmentIDs(batch, in: part)
          if let index = ids.firstIndex(where: { $0?.hasPrefix(prefix) == true }) {
            return QueueEntryID(batch: batch, index: index)
          }
        }
        return nil
      }
    } ?? nil
  }

  func incoming() throws -> [Queue.IncomingAttachment] {
    try withPlaceIfAny { place in
      var incoming: [Queue.IncomingAttachment] = []
      for id in try place.attachmentDirectories() {
        do throws(Errno) {
          let path = AttachmentPlace.path(id)
          let directory = try place.openFile(path, [.readOnly, .directory])
          // The copying process has it locked.
          guard try !directory.tryLock(.shared) else { continue }
          for entry in try directory.entries() {
            guard let (total, sender) = AttachmentPlace.copying(entry.name.text) else { continue }
            let size = try fileStatus(entry.name, at: directory.rawValue).size
            incoming.append(
              .init(id: id, sender: sender, completedBytes: min(size, total), totalBytes: total))
          }
        } catch {
          // Finished or given up between two checks.
          guard error == .noSuchFile else { throw error }
        }
      }
      return incoming
    } ?? []
  }

  private func withPlaceIfAny<Result>(_ body: (QueueDirectory) throws -> Result) throws -> Result? {
    guard let place = try queue.open() else { return nil }
    return try body(place)
  }
}
