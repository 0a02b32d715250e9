package import WormholeSystem

/// The engine's operations for the attachments of a `Queue`.
package protocol AttachmentStore: Sendable {
  /// The place of a waiting attachment, for people.
  func location(of id: String) -> String

  func stage(
    _ id: String, bytes: Int64, sender: String, continuing old: [String], for entry: QueueEntry?
  ) throws -> any AttachmentStage

  func waiting(prefix: String) throws -> [Queue.WaitingAttachment]
  func rename(_ id: String, to newID: String) throws -> Int64?
  func remove(_ id: String) throws
  /// Its remains should be removed.
  func giveBack(_ id: String, to path: String) throws -> Bool
  func entry(of sender: String, attachmentPrefix prefix: String) throws -> QueueEntryID?
  func incoming() throws -> [Queue.IncomingAttachment]
}

extension AttachmentStore {
  /// Writes content into a new file, and gives the file a name once it is whole.
  ///
  /// - Parameter write: Returns whether it is whole.
  /// - Returns: false if the name is taken, or nothing can have it.
  package func giveBack(
    to path: String, _ write: (borrowing FileDescriptor) throws -> Bool
  ) throws -> Bool {
    let staged = path + ".returning-" + Nonce.next()
    do {
      let file = try FileDescriptor.open(staged, [.readWrite, .create, .exclusive, .noFollow])
      defer { try? removeFile(staged) }  // It has its own name, or is of no use.
      guard try write(file) else { return false }
      try file.synchronize()
      try WormholeSystem.rename(
        staged, at: Directory.current, to: path, at: Directory.current, .keep)
      return true
    } catch let error as Errno {
      switch error {
      case .noSuchFile, .alreadyExists, .accessDenied: return false
      default: throw error
      }
    }
  }
}

/// An attachment that is being created, this process's own until it is released or ends. Not thread-safe
/// except where stated.
package protocol AttachmentStage: Sendable {
  /// Its name.
  var id: String { get }

  /// Copies a file into the attachment.
  ///
  /// - Parameters:
  ///   - source: a regular file, at its beginning.
  ///   - status: the status of the source when it was opened; its size is the amount copied.
  ///   - check: called between pieces of at most 8 MiB; what it throws ends the copy.
  ///   - copied: called after each piece.
  /// - Returns: the checksum (XXH64); nil if no bytes passed through this process.
  /// - Throws: what `check` throws; `AppGroupError`: errors of the engine, and `leaseLost` if
  ///   another process took this transfer over. The caller removes the parts then.
  func copy(
    _ source: borrowing FileDescriptor, _ status: FileStatus, durability: Durability,
    check: @escaping () throws -> Void, copied: @escaping (Int64) -> Void
  ) throws -> UInt64?

  /// Hands a file over: it loses its name, and its content becomes the attachment's.
  ///
  /// - Returns: false if it has to be copied; nothing has changed then.
  /// - Throws: `AppGroupError` for errors of the file system; `leaseLost` as in `copy`, or if the
  ///   source is no longer there.
  func move(from source: String, durability: Durability) throws -> Bool
}

extension Queue.Sender {
  /// Begins an attachment; the entry that names it is sent when it is complete.
  ///
  /// - Parameters:
  ///   - id: up to 128 letters, digits, dots and hyphens that name no other attachment, and never did.
  ///   - bytes: the size of its content.
  ///   - old: incomplete attachments of the same file. On etcd it continues one of them, which then
  ///     no longer exists.
  ///   - entry: the entry of another queue that is being forwarded: the attachment is begun only if
  ///     that entry's consumer was not replaced.
  /// - Throws: `AppGroupError`: errors of the engine; `tooLarge` for a file beyond the limit of
  ///   etcd; `unsupportedValue` for any other id; `leaseLost` if the consumer was replaced.
  /// - Complexity: about ten system calls; on etcd one transaction, and three requests to continue
  ///   one.
  package func stage(
    _ id: String, bytes: Int64, continuing old: [String] = [], for entry: QueueEntry? = nil
  ) throws -> any AttachmentStage {
    guard AttachmentPlace.isID(id) else {
      throw AppGroupError(
        .unsupportedValue, "begin an attachment of \"\(queue.name)\"", path: queue.path,
        reason: "\"\(id)\" cannot be its name")
    }
    return try queue.attempt("begin an attachment of") {
      try queue.attachments.stage(
        id, bytes: bytes, sender: EncodedName(name).component, continuing: old, for: entry)
    }
  }
}

/// Information on attachments for senders and displays of progress.
extension Queue {
  /// An attachment that is not yet taken.
  package struct WaitingAttachment: Sendable, Hashable {
    /// Its name.
    package let id: String
    /// Whether its content is complete.
    package let isWhole: Bool

    package init(id: String, isWhole: Bool) {
      self.id = id
      self.isWhole = isWhole
    }
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

    package init(id: String, sender: String, completedBytes: Int64, totalBytes: Int64) {
      self.id = id
      self.sender = sender
      self.completedBytes = completedBytes
      self.totalBytes = totalBytes
    }
  }

  fileprivate var attachments: any AttachmentStore { container.engine.attachments(of: self) }

  private func looking<Result>(_ body: (any AttachmentStore) throws -> Result) throws -> Result {
    try attempt("look at the attachments of") { try body(attachments) }
  }

  /// The place of a waiting attachment, for people.
  package func location(ofAttachment id: String) -> String { attachments.location(of: id) }

  /// Returns the attachments that are not taken and whose names begin with a prefix.
  ///
  /// - Throws: `AppGroupError`, for errors of the engine, as all of these methods.
  /// - Complexity: one listing, and one check for each; on etcd one request.
  package func waitingAttachments(prefix: String) throws -> [WaitingAttachment] {
    try looking { try $0.waiting(prefix: prefix) }
  }

  /// Renames an attachment that is complete; the process that began it can no longer use it.
  ///
  /// - Returns: the size of its content in bytes; nil if it does not exist, because it was taken.
  package func renameAttachment(_ id: String, to newID: String) throws -> Int64? {
    try looking { try $0.rename(id, to: newID) }
  }

  /// Removes an attachment that is not taken; a missing one is ignored.
  package func removeAttachment(_ id: String) throws { try looking { try $0.remove(id) } }

  /// Moves the content of an attachment that is not taken to a path, unless a file exists there. On
  /// another file system, and on etcd, it is copied; the caller then removes the attachment.
  ///
  /// - Returns: whether it exists.
  package func returnAttachment(_ id: String, to path: String) throws -> Bool {
    try looking { try $0.giveBack(id, to: path) }
  }

  /// Returns an entry of a sender that waits or is taken, and names an attachment with a prefix;
  /// nil if there is none.
  ///
  /// - Complexity: reads every existing batch of the sender.
  package func entry(of sender: String, attachmentPrefix prefix: String) throws -> QueueEntryID? {
    try looking { try $0.entry(of: EncodedName(sender).component, attachmentPrefix: prefix) }
  }

  /// Returns the files that are being copied into the queue at this moment.
  ///
  /// - Complexity: one listing, and four system calls for each attachment; on etcd three requests for each.
  package func incomingAttachments() throws -> [IncomingAttachment] {
    try looking { try $0.incoming() }
  }
}
