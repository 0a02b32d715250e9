public import FoundationEssentials
public import PropertyLists
import SystemCalls

/// An entry that has failed, and that its consumer has kept: to be looked at, and sent again or forgotten.
///
/// `failed/<batch>.<index>` is a batch of this one entry, with a `reason` beside its `entries`. So sending it
/// again is a rename to a new name in `pending/`. A file that came with it waits in `failed/attachment-<id>`.
///
/// **What a crash leaves.** It is kept first, its file is moved next, and then it ends as any other that has
/// failed. A consumer that finds one kept that has not ended does the rest.
public struct QueueFailure: Sendable, Hashable {
  /// What it was known by; an entry that is sent again has a new one.
  public let id: QueueEntryID
  /// What was sent.
  public let payload: PropertyListValue
  /// Why it has failed.
  public let reason: String
  /// When it was given up.
  public let date: Date
}

extension Queue {
  /// The entries that have failed and were kept, in the order of sending.
  ///
  /// - Throws: `AppGroupError`, for what the file system refuses. What cannot be read is left out.
  /// - Complexity: one listing, and one file read for each.
  public func failures() throws -> [QueueFailure] {
    try reporting("look for what has failed in \"\(name)\"", path: path) {
      guard let place = try place.directory.open() else { return [] }
      let entries = try SharedContainer.entries(QueueDirectory.failed, at: place.rawValue) ?? []
      return try entries.compactMap { OutcomeFile.id($0.name.text) }
        .sorted { ($0.batch, $0.index) < ($1.batch, $1.index) }
        .compactMap { try self.place.failure($0, at: place) }
    }
  }

  /// Sends an entry that has failed and was kept once more, as a new one of the same sender: with another
  /// id, without the key, the expiry and the receipt of the first, whose end stays what it is.
  ///
  /// - Returns: the new entry's id; nil when there is no such entry any more.
  /// - Throws: `AppGroupError`, for what the file system refuses: it is kept still then.
  /// - Complexity: some cheap calls and one rename.
  public func retry(_ id: QueueEntryID) throws -> QueueEntryID? {
    try reporting("send again what has failed in \"\(name)\"", path: path) {
      guard let place = try place.directory.open(),
        let failure = try self.place.failure(id, at: place)
      else { return nil }
      // Its consumer may have died before it could say so.
      try self.place.note(.failed(reason: failure.reason), of: id, from: nil, at: place)
      if let attachment = failure.payload.attachmentID {
        try self.place.move(
          QueueDirectory.failedAttachmentPath(attachment), to: AttachmentPlace.path(attachment),
          at: place)
      }
      let sender = Sender(
        self, name: id.sender, component: id.batch.sender, limits: .standard)
      return try sender.adopt(QueueDirectory.failedPath(id))
    }
  }

  /// Forgets an entry that has failed and was kept, and the file that came with it.
  ///
  /// - Returns: false when there is no such entry any more.
  /// - Throws: `AppGroupError`, for what the file system refuses.
  @discardableResult
  public func forgetFailure(_ id: QueueEntryID) throws -> Bool {
    try reporting("forget what has failed in \"\(name)\"", path: path) {
      guard let place = try place.directory.open() else { return false }
      if let attachment = try self.place.failure(id, at: place)?.payload.attachmentID {
        // In the second place if who was about to send it again was killed.
        for path in [
          QueueDirectory.failedAttachmentPath(attachment), AttachmentPlace.path(attachment),
        ] { try self.place.removeAttachmentDirectory(path, at: place) }
      }
      return try self.place.discard(QueueDirectory.failedPath(id), at: place)
    }
  }
}

extension QueueDirectory {
  fileprivate static func failedAttachmentPath(_ id: String) -> String {
    failed + "/" + AttachmentPlace.takenPrefix + id
  }

  /// - Returns: nil for what is not there, or cannot be read.
  func failure(_ id: QueueEntryID, at place: borrowing FileDescriptor) throws -> QueueFailure? {
    let path = Self.failedPath(id)
    do {
      guard let bytes = try read(path, at: place),
        let payload = try Batch(bytes: bytes, count: 1).entries[0].payload
      else { return nil }
      let reason = try PropertyListValue(bytes: bytes)["reason"]?.stringValue
      return QueueFailure(
        id: id, payload: payload, reason: reason ?? "no reason was given",
        date: try fileStatus(path, at: place.rawValue).modified)
    } catch is Batch.Unreadable {
      return nil
    } catch let error as Errno where error == .noSuchFile {
      // Sent again, or forgotten, just now.
      return nil
    }
  }

  /// Keeps an entry that fails, and its file.
  ///
  /// - Throws: `.noSuchFile` when its consumer was replaced.
  func keep(
    _ entry: Batch.Entry, _ id: QueueEntryID, _ reason: String, of consumer: String,
    at place: borrowing FileDescriptor
  ) throws {
    guard let payload = entry.payload else { return }
    let list: PropertyListValue = .array([Batch.Entry(payload: payload).value])
    let bytes = try PropertyListValue.dictionary(["entries": list, "reason": .string(reason)])
      .binaryBytes()
    do throws(Errno) {
      try root.makeDirectoryIfMissing(Self.failed, at: place.rawValue)
      try storeNote(bytes, as: Self.failedPath(id), from: consumer, at: place)
    } catch {
      guard error == .alreadyExists else { throw error }
    }
    if let attachment = payload.attachmentID {
      try move(
        AttachmentPlace.takenPath(attachment, by: consumer),
        to: Self.failedAttachmentPath(attachment), at: place)
    }
  }

  /// Moves what may be there already.
  fileprivate func move(
    _ path: String, to other: String, at place: borrowing FileDescriptor
  ) throws(Errno) {
    do throws(Errno) {
      try rename(path, at: place.rawValue, to: other, at: place.rawValue, .keep)
    } catch {
      guard [.noSuchFile, .alreadyExists].contains(error) else { throw error }
    }
  }
}
