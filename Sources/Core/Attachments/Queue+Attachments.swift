import Containers
import Entries
import PropertyLists
package import QueueFiles
package import Queues
import SystemCalls

/// What senders and displays of progress can learn of attachments; see `AttachmentPlace`.
extension Queue {
  /// An attachment that is not yet taken.
  package struct WaitingAttachment: Sendable, Hashable {
    /// Its name.
    package let id: String
    /// Whether its content is complete.
    package let isWhole: Bool
  }

  /// A file that is being copied at this moment.
  package struct IncomingAttachment: Sendable, Hashable {
    /// The attachment's name.
    package let id: String
    /// The sender's name.
    package let sender: String
    /// The number of bytes copied so far.
    package let completedBytes: Int64
    /// The number of bytes of the whole file.
    package let totalBytes: Int64
  }

  /// Returns the attachments that are not taken and whose names begin with a prefix.
  ///
  /// - Throws: `AppGroupError` for errors of the file system.
  /// - Complexity: one listing, and one check for each.
  package func waitingAttachments(prefix: String) throws -> [WaitingAttachment] {
    try withPlaceIfAny { place in
      try place.attachmentDirectories().filter { $0.hasPrefix(prefix) }.map { id in
        let content = AttachmentPlace.path(id) + "/" + AttachmentPlace.content
        return .init(id: id, isWhole: try place.exists(content))
      }
    } ?? []
  }

  /// Renames an attachment that is complete; the process that began it can no longer use it.
  ///
  /// - Returns: the size of its content in bytes; nil if it is not there, because it was taken.
  /// - Throws: `AppGroupError` for errors of the file system.
  package func renameAttachment(_ id: String, to newID: String) throws -> Int64? {
    try withPlaceIfAny { place in
      let path = AttachmentPlace.path(newID)
      guard try ifPresent(place.move(AttachmentPlace.path(id), to: path, .keep)) != nil else {
        return nil
      }
      return try ifPresent(place.fileStatus(path + "/" + AttachmentPlace.content).size)
    } ?? nil
  }

  /// Removes an attachment that is not taken; one that is not there is no error.
  ///
  /// - Throws: `AppGroupError` for errors of the file system.
  package func removeAttachment(_ id: String) throws {
    try withPlaceIfAny { place in
      try place.removeAttachmentDirectory(AttachmentPlace.path(id))
    }
  }

  /// Moves the content of an attachment that is not taken to a path, unless there is a file
  /// already.
  ///
  /// - Returns: whether it was moved; false also for another file system.
  package func returnAttachment(_ id: String, to path: String) throws -> Bool {
    try withPlaceIfAny { place in
      do throws(Errno) {
        try place.move(
          AttachmentPlace.path(id) + "/" + AttachmentPlace.content, to: path,
          at: Directory.current, .keep)
        return true
      } catch {
        switch error {
        case .noSuchFile, .alreadyExists, .crossesDevices, .accessDenied: return false
        default: throw error
        }
      }
    } ?? false
  }

  /// Returns an entry of a sender that waits or is taken, and names an attachment with a prefix;
  /// nil if there is none.
  ///
  /// - Throws: `AppGroupError` for errors of the file system.
  /// - Complexity: reads every batch of the sender that is there.
  package func entry(of sender: String, attachmentPrefix prefix: String) throws -> QueueEntryID? {
    let sender = EncodedName(sender).component
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

  /// Returns the files that are being copied into the queue at this moment.
  ///
  /// - Throws: `AppGroupError` for errors of the file system.
  /// - Complexity: one listing, and four system calls for each attachment.
  package func incomingAttachments() throws -> [IncomingAttachment] {
    try withPlaceIfAny { place in
      var incoming: [IncomingAttachment] = []
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
    try reporting("look at the attachments of \"\(name)\"", path: path) {
      guard let place = try open() else { return nil }
      return try body(place)
    }
  }
}
