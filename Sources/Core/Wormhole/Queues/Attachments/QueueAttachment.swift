import WormholePropertyLists
package import WormholeSystem

/// The file that accompanies an entry until the entry ends; see `AttachmentPlace`.
package struct QueueAttachment: Sendable {
  /// The key under which a payload, a dictionary, names its attachment. Other payloads should not
  /// use it.
  package static let key = AttachmentPlace.payloadKey

  /// The state of an attachment.
  package enum Condition: Sendable, Hashable {
    /// It exists, with this many bytes.
    case present(bytes: Int64)
    /// Its content was renamed away, by its receiver before it died.
    case claimed
    /// It does not exist.
    case missing
  }

  /// Its name.
  package let id: String
  fileprivate let batch: TakenBatch

  private var relativePath: String { AttachmentPlace.takenPath(id, by: batch.consumer) }
  private var contentPath: String { relativePath + "/" + AttachmentPlace.content }

  /// The path of its content. Moving it away claims it.
  package var path: String { batch.queue.directory.path + "/" + contentPath }

  /// Returns its state.
  ///
  /// - Throws: `AppGroupError`: `leaseLost` if this consumer was replaced; `notAValue` for anything
  ///   other than a regular file of the container's user; otherwise errors of the file system.
  package func condition() throws -> Condition {
    try withPlace { place in
      if let file = try open(at: place) { return .present(bytes: try file.status().size) }
      if try place.exists(relativePath) { return .claimed }
      try confirm(at: place)
      return .missing
    }
  }

  /// Opens its content for reading.
  ///
  /// - Returns: nil if it was claimed or is missing.
  /// - Throws: as `condition()`.
  package func open() throws -> FileDescriptor? {
    try withPlace { place in
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
        throw AppGroupError(
          .notAValue, "open an attachment of \"\(batch.queue.name)\"", path: path,
          reason: "it is no regular file of the container's owner")
      default: throw error
      }
    }
  }

  // MARK: Claiming

  /// Makes its content the receiver's own in one step: a rename to a path on the same file system. On
  /// etcd a transaction follows; a receiver that is killed before that may get the file once more.
  ///
  /// - Parameter destination: an absolute path; an existing file is replaced.
  /// - Returns: false if the destination is on a different file system; then nothing has changed.
  /// - Throws: as `condition()`; `.noSuchFile` as an `Errno` if there is no such directory or the
  ///   content was claimed before.
  package func claim(to destination: String) throws -> Bool {
    try batch.confirm()
    let place = try batch.open()
    do throws(Errno) {
      try place.move(contentPath, to: destination, at: Directory.current)
    } catch {
      if error == .crossesDevices { return false }
      if error == .noSuchFile { try confirm(at: place) }
      throw error
    }
    try noteClaimed()
    return true
  }

  /// Records that its content was copied to its destination.
  ///
  /// - Throws: as `condition()`.
  package func markClaimed() throws {
    try withPlace { place in
      if try !place.discard(contentPath) { try confirm(at: place) }
    }
    try noteClaimed()
  }

  // For a consumer that does not see this directory.
  private func noteClaimed() throws {
    try reporting("claim an attachment of \"\(batch.queue.name)\"", path: path) {
      try batch.store.noteClaimed(id)
    }
  }

  private func confirm(at place: QueueDirectory) throws {
    let consumer = QueueDirectory.takenPath(batch.consumer)
    guard try place.exists(consumer) else { throw batch.queue.replaced() }
  }

  private func withPlace<Result: ~Copyable>(
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
