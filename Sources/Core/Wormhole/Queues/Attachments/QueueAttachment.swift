import WormholePropertyLists
package import WormholeSystem

/// The file that accompanies an entry until the entry ends; see `AttachmentLayout`.
package struct QueueAttachment: Sendable {
  /// The key under which a payload, a dictionary, names its attachment. Other payloads should not
  /// use it.
  package static let key = AttachmentLayout.payloadKey

  package enum Condition: Sendable, Hashable {
    case present(bytes: Int64)
    /// Its content was renamed away by its receiver, which then died.
    case movedAway
    case missing
  }

  package let id: String
  fileprivate let batch: TakenBatch

  private var relativePath: String { AttachmentLayout.takenPath(id, by: batch.consumer) }
  private var contentPath: String { relativePath + "/" + AttachmentLayout.content }

  /// The path of its content.
  package var path: String { batch.queue.directory.path + "/" + contentPath }

  /// Returns its state.
  ///
  /// - Throws: `WormholeError`: `leaseLost` if this consumer was replaced; `notAValue` for anything
  ///   other than a regular file of the container's user; otherwise errors of the file system.
  package func condition() throws -> Condition {
    try withQueue { place in
      if let file = try open(at: place) { return .present(bytes: try file.status().size) }
      if try place.exists(relativePath) { return .movedAway }
      try confirm(at: place)
      return .missing
    }
  }

  /// Opens its content for reading.
  ///
  /// - Returns: nil if it was moved away or is missing.
  /// - Throws: as `condition()`.
  package func open() throws -> FileDescriptor? {
    try withQueue { place in
      let file = try open(at: place)
      if file == nil { try confirm(at: place) }
      return file
    }
  }

  private func open(at place: QueueDirectory) throws -> FileDescriptor? {
    do throws(Errno) {
      let file = try place.openFile(contentPath, [.readOnly, .nonBlocking])
      let status = try file.status()
      guard status.kind == .regular,
        batch.queue.directory.root.access.trusts(status, in: try place.status())
      else { throw .tooManyLinks }
      return file
    } catch {
      switch error {
      case .noSuchFile: return nil
      case .tooManyLinks, .noSuchDevice, .isDirectory:
        throw WormholeError(
          .notAValue, "open an attachment of \"\(batch.queue.name)\"", path: path,
          reason: "it is not a regular file of the container's owner")
      default: throw error
      }
    }
  }

  // MARK: Moving

  /// Makes its content the receiver's own in one step: a rename to a path on the same file system. On
  /// etcd a transaction follows; a receiver that is killed before that may get the file once more.
  ///
  /// - Parameters:
  ///   - destination: an absolute path.
  ///   - mode: whether an existing file is replaced, or `.alreadyExists` thrown as an `Errno`.
  /// - Returns: false if the destination is on a different file system; then nothing has changed.
  /// - Throws: as `condition()`; `.noSuchFile` as an `Errno` if there is no such directory or the
  ///   content was moved before.
  package func move(to destination: String, _ mode: RenameMode = .replace) throws -> Bool {
    try batch.confirm()
    let place = try batch.open()
    do throws(Errno) {
      try place.move(contentPath, to: destination, at: Directory.current, mode)
    } catch {
      if error == .crossesDevices { return false }
      if error == .noSuchFile { try confirm(at: place) }
      throw error
    }
    try noteMovedAway()
    return true
  }

  /// Removes its content, which was copied to its destination.
  ///
  /// - Throws: as `condition()`.
  package func removeContent() throws {
    try withQueue { place in
      if try !place.discard(contentPath) { try confirm(at: place) }
    }
    try noteMovedAway()
  }

  // For a consumer that does not see this directory.
  private func noteMovedAway() throws {
    try reporting("move an attachment of \"\(batch.queue.name)\"", path: path) {
      try batch.store.noteMovedAway(id)
    }
  }

  private func confirm(at place: QueueDirectory) throws {
    let consumer = QueueDirectory.takenPath(batch.consumer)
    guard try place.exists(consumer) else { throw batch.queue.replaced() }
  }

  private func withQueue<Result: ~Copyable>(
    _ body: (QueueDirectory) throws -> Result
  ) throws -> Result {
    try reporting("use an attachment of \"\(batch.queue.name)\"", path: path) {
      try body(batch.open())
    }
  }
}

extension QueueEntry {
  /// The file that was sent with the entry; nil if there is none.
  package var attachment: QueueAttachment? {
    payload.attachmentID.map { QueueAttachment(id: $0, batch: batch) }
  }
}

/// The engine's operations for the attachments of a `Queue`.
package protocol AttachmentStore: Sendable {
  func stage(
    _ id: String, bytes: Int64, sender: String, for batch: TakenBatch?
  ) throws -> any AttachmentStage

  func waiting(prefix: String) throws -> [WaitingAttachment]
  func rename(_ id: String, to newID: String) throws -> Bool
  func remove(_ id: String) throws
}

/// An attachment that is being created, this process's own until it is released or ends. Not thread-safe
/// except where stated.
package protocol AttachmentStage: Sendable {
  /// Copies a file into the attachment.
  ///
  /// - Parameters:
  ///   - source: a regular file, at its beginning.
  ///   - status: the status of the source when it was opened; its size is the amount copied.
  ///   - check: called between pieces of at most 8 MiB; what it throws ends the copy.
  ///   - copied: called after each piece.
  /// - Throws: what `check` throws; `WormholeError`: errors of the engine, and `leaseLost` if
  ///   another process took this transfer over. The caller removes the parts then.
  func copy(
    _ source: borrowing FileDescriptor, _ status: FileStatus, durability: Durability,
    check: @escaping () throws -> Void, copied: @escaping (Int64) -> Void
  ) throws
}

extension QueueSender {
  /// Begins an attachment; the entry that names it is sent when it is complete.
  ///
  /// - Parameters:
  ///   - id: up to 128 letters, digits, dots and hyphens that name no other attachment, and never did.
  ///   - bytes: the size of its content.
  ///   - batch: that of an entry of another queue that is being forwarded: the attachment is begun
  ///     only if that entry's consumer was not replaced.
  /// - Throws: `WormholeError`: errors of the engine; `tooLarge` for a file beyond the limit of
  ///   etcd; `unsupportedValue` for any other id; `leaseLost` if the consumer was replaced.
  /// - Complexity: about ten system calls; on etcd one transaction.
  package func stage(
    _ id: String, bytes: Int64, for batch: TakenBatch? = nil
  ) throws -> any AttachmentStage {
    guard AttachmentLayout.isID(id) else {
      throw WormholeError(
        .unsupportedValue, "begin an attachment of \"\(queue.name)\"", path: queue.path,
        reason: "\"\(id)\" cannot be its name")
    }
    return try queue.attempt("begin an attachment of") {
      try queue.attachments.stage(
        id, bytes: bytes, sender: EncodedName(name).component, for: batch)
    }
  }
}

/// An attachment that is not yet taken.
package struct WaitingAttachment: Sendable, Hashable {
  package let id: String
  package let isWhole: Bool

  package init(id: String, isWhole: Bool) {
    self.id = id
    self.isWhole = isWhole
  }
}

/// Information on attachments for senders.
extension Queue {
  fileprivate var attachments: any AttachmentStore {
    container.engine(as: (any QueueEngine).self).attachments(of: plain)
  }

  private func looking<Result>(_ body: (any AttachmentStore) throws -> Result) throws -> Result {
    try attempt("look at the attachments of") { try body(attachments) }
  }

  /// Returns the attachments that are not taken and whose names begin with a prefix.
  ///
  /// - Throws: `WormholeError` for errors of the engine, like all these methods.
  /// - Complexity: one listing, and one check for each; on etcd one request.
  package func waitingAttachments(prefix: String) throws -> [WaitingAttachment] {
    try looking { try $0.waiting(prefix: prefix) }
  }

  /// Renames an attachment that is complete; the process that began it can no longer use it.
  ///
  /// - Returns: false if it does not exist, because it was taken.
  package func renameAttachment(_ id: String, to newID: String) throws -> Bool {
    try looking { try $0.rename(id, to: newID) }
  }

  /// Removes an attachment that is not taken; a missing one is ignored.
  package func removeAttachment(_ id: String) throws { try looking { try $0.remove(id) } }

  /// Returns an entry of a sender that waits or is taken, and names an attachment with a prefix;
  /// nil if there is none.
  ///
  /// - Complexity: reads every waiting or taken batch of the sender.
  package func entry(of sender: String, attachmentPrefix prefix: String) throws -> QueueEntryID? {
    try attempt("look at the attachments of") {
      try store.unfinished(of: EncodedName(sender).component, limit: .max)
        .first { $0.payload.attachmentID?.hasPrefix(prefix) == true }?.id
    }
  }
}
