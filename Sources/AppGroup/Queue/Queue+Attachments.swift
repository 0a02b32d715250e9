import PropertyLists
import SystemCalls

/// What senders, and those who show progress, learn of attachments; see `AttachmentPlace`.
extension Queue {
  /// An attachment that is not taken yet.
  package struct WaitingAttachment: Sendable, Hashable {
    /// Its name.
    package let id: String
    /// Whether its content is whole.
    package let isWhole: Bool
  }

  /// A file that is being copied right now.
  package struct IncomingAttachment: Sendable, Hashable {
    /// The attachment's name.
    package let id: String
    /// Who sends it.
    package let sender: String
    /// Bytes that are there.
    package let completedBytes: Int64
    /// Bytes of the whole.
    package let totalBytes: Int64
  }

  /// The attachments that are not taken, and whose names begin so.
  ///
  /// - Throws: `AppGroupError`, for what the file system refuses.
  /// - Complexity: one listing, and one look for each.
  package func waitingAttachments(prefix: String) throws -> [WaitingAttachment] {
    try withPlaceIfAny { place in
      try self.place.attachmentDirectories(at: place).filter { $0.hasPrefix(prefix) }.map { id in
        let content = AttachmentPlace.path(id) + "/" + AttachmentPlace.content
        return .init(id: id, isWhole: try self.place.exists(content, at: place))
      }
    } ?? []
  }

  /// Gives an attachment that is whole another name: who has begun it cannot use it any more.
  ///
  /// - Returns: how many bytes its content has; nil when it is not there, because it was taken.
  /// - Throws: `AppGroupError`, for what the file system refuses.
  package func renameAttachment(_ id: String, to newID: String) throws -> Int64? {
    try withPlaceIfAny { place in
      do throws(Errno) {
        let path = AttachmentPlace.path(newID)
        try rename(
          AttachmentPlace.path(id), at: place.rawValue, to: path, at: place.rawValue, .keep)
        return try fileStatus(path + "/" + AttachmentPlace.content, at: place.rawValue).size
      } catch {
        guard error == .noSuchFile else { throw error }
        return nil
      }
    } ?? nil
  }

  /// Removes an attachment that is not taken; one that is not there is fine.
  ///
  /// - Throws: `AppGroupError`, for what the file system refuses.
  package func removeAttachment(_ id: String) throws {
    try withPlaceIfAny { place in
      try self.place.removeAttachmentDirectory(AttachmentPlace.path(id), at: place)
    }
  }

  /// Moves the content of an attachment that is not taken to a path, unless something lies there.
  ///
  /// - Returns: whether it was moved; also false for another file system.
  package func returnAttachment(_ id: String, to path: String) throws -> Bool {
    try withPlaceIfAny { place in
      do throws(Errno) {
        try rename(
          AttachmentPlace.path(id) + "/" + AttachmentPlace.content, at: place.rawValue, to: path,
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

  /// The entry of a sender that waits or is taken, and names an attachment whose name begins so; nil if
  /// there is none.
  ///
  /// - Throws: `AppGroupError`, for what the file system refuses.
  /// - Complexity: reads every batch of the sender that is there.
  package func entry(
    of sender: String, attachmentPrefix prefix: String
  ) throws -> QueueEntryID? {
    let sender = EncodedName(sender).component
    return try withPlaceIfAny { place in
      for _ in 0..<interruptionLimit {
        // What is taken was pending before: in this order nothing is missed.
        let pending = QueueDirectory.pending
        if let found = try entry(prefix, sender, in: pending, at: place)?.id { return found }
        guard let consumer = try self.place.consumer(at: place) else { return nil }
        let taken = QueueDirectory.taken + "/" + consumer
        // A consumer that is replaced meanwhile gives its directory another name.
        if let found = try entry(prefix, sender, in: taken, at: place) { return found.id }
      }
      throw Errno.deviceBusy
    } ?? nil
  }

  /// - Returns: nil when there is no such part.
  private func entry(
    _ prefix: String, _ sender: String, in part: String, at place: borrowing FileDescriptor
  ) throws -> (id: QueueEntryID?, Void)? {
    guard let batches = try self.place.batches(part, at: place) else { return nil }
    for batch in batches where batch.sender == sender {
      let ids = try self.place.attachmentIDs(batch, in: part, at: place)
      if let index = ids.firstIndex(where: { $0?.hasPrefix(prefix) == true }) {
        return (QueueEntryID(batch: batch, index: index), ())
      }
    }
    return (nil, ())
  }

  /// The files that are being copied into the queue right now.
  ///
  /// - Throws: `AppGroupError`, for what the file system refuses.
  /// - Complexity: one listing, and four system calls for each attachment.
  package func incomingAttachments() throws -> [IncomingAttachment] {
    try withPlaceIfAny { place in
      var incoming: [IncomingAttachment] = []
      for id in try self.place.attachmentDirectories(at: place) {
        do throws(Errno) {
          let path = AttachmentPlace.path(id)
          let directory = try FileDescriptor.openBeneath(
            path, at: place.rawValue, [.readOnly, .directory])
          // Who copies has it locked.
          guard try !directory.tryLock(.shared) else { continue }
          for entry in try directory.entries() {
            guard let (total, sender) = AttachmentPlace.copying(entry.name.text) else { continue }
            let size = try fileStatus(entry.name, at: directory.rawValue).size
            incoming.append(
              .init(id: id, sender: sender, completedBytes: min(size, total), totalBytes: total))
          }
        } catch {
          // Finished or given up between two looks.
          guard error == .noSuchFile else { throw error }
        }
      }
      return incoming
    } ?? []
  }

  /// Whether anything waits or is taken.
  ///
  /// - Throws: `AppGroupError`, for what the file system refuses.
  /// - Complexity: two or three listings.
  package func hasEntries() throws -> Bool {
    try withPlaceIfAny { place in
      for _ in 0..<interruptionLimit {
        if try self.place.batches(QueueDirectory.pending, at: place)?.isEmpty == false {
          return true
        }
        guard let consumer = try self.place.consumer(at: place) else { return false }
        let taken = QueueDirectory.taken + "/" + consumer
        // A consumer that is replaced meanwhile gives its directory another name.
        if let batches = try self.place.batches(taken, at: place) { return !batches.isEmpty }
      }
      throw Errno.deviceBusy
    } ?? false
  }

  private func withPlaceIfAny<Result>(
    _ body: (borrowing FileDescriptor) throws -> Result
  ) throws -> Result? {
    try reporting("look at the attachments of \"\(name)\"", path: path) {
      guard let place = try place.directory.open() else { return nil }
      return try body(place)
    }
  }
}

extension QueueDirectory {
  /// The attachments that the entries of a batch name, in their order; none for one that is gone or
  /// unreadable.
  func attachmentIDs(
    _ batch: BatchName, in part: String, at place: borrowing FileDescriptor
  ) throws -> [String?] {
    do {
      guard let bytes = try read(part + "/" + batch.text, at: place) else { return [] }
      return try Batch(bytes: bytes, count: batch.count).entries
        .map { $0.payload?.attachmentID }
    } catch is Batch.Unreadable {
      // Its consumer puts it aside; what it named is its sender's.
      return []
    }
  }
}
