import PropertyLists
package import SystemCalls

/// The file that came with an entry, until the entry ends; see `AttachmentPlace`.
package struct QueueAttachment: Sendable {
  /// Under which key a payload, a dictionary, names its attachment. Other payloads should not use it.
  package static let key = "@attachment"

  /// What is left of an attachment.
  package enum Condition: Sendable, Hashable {
    /// It is there, with so many bytes.
    case present(bytes: Int64)
    /// Somebody has renamed its content away: its receiver, before it died.
    case claimed
    /// It is not there at all.
    case missing
  }

  /// Its name.
  package let id: String
  private let batch: TakenBatch

  fileprivate init(_ id: String, _ batch: TakenBatch) {
    self.id = id
    self.batch = batch
  }

  private var relativePath: String { AttachmentPlace.takenPath(id, by: batch.consumer) }
  private var contentPath: String { relativePath + "/" + AttachmentPlace.content }

  /// Where its content lies. Whoever moves it away from there has claimed it.
  package var path: String { batch.queue.path + "/" + contentPath }

  /// What is left of it.
  ///
  /// - Throws: `AppGroupError`: `leaseLost` when this consumer was replaced; `notAValue` for what is no
  ///   regular file of the container's user; otherwise what the file system refuses.
  package func condition() throws -> Condition {
    try withPlace { place in
      if let file = try open(at: place) { return .present(bytes: try file.status().size) }
      let queue = batch.queue.place
      if try queue.exists(relativePath, at: place) { return .claimed }
      try confirm(at: place)
      return .missing
    }
  }

  /// Opens its content for reading.
  ///
  /// - Returns: nil when it was claimed, or is missing.
  /// - Throws: as `condition()`.
  package func open() throws -> FileDescriptor? {
    try withPlace { place in
      let file = try open(at: place)
      if file == nil { try confirm(at: place) }
      return file
    }
  }

  private func open(at place: borrowing FileDescriptor) throws -> FileDescriptor? {
    do throws(Errno) {
      let file = try FileDescriptor.openBeneath(
        contentPath, at: place.rawValue, [.readOnly, .nonBlocking])
      let status = try file.status()
      guard status.kind == .regular,
        batch.queue.place.root.access.trusts(status, in: try place.status())
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

  /// Makes its content the receiver's own, in one step: a rename to a path on the same file system.
  ///
  /// - Parameter destination: an absolute path; what lies there is replaced.
  /// - Returns: false when that is another file system, and nothing has changed.
  /// - Throws: as `condition()`; `.noSuchFile` as an `Errno` where there is no such directory or the
  ///   content was claimed before.
  package func claim(to destination: String) throws -> Bool {
    let place = try batch.queue.openForConsumer()
    do throws(Errno) {
      try rename(contentPath, at: place.rawValue, to: destination, at: Directory.current)
      return true
    } catch {
      if error == .crossesDevices { return false }
      if error == .noSuchFile { try confirm(at: place) }
      throw error
    }
  }

  /// Says that its content was copied to where the receiver wants it.
  ///
  /// - Throws: as `condition()`.
  package func markClaimed() throws {
    try withPlace { place in
      guard try !batch.queue.place.discard(contentPath, at: place) else { return }
      try confirm(at: place)
    }
  }

  private func confirm(at place: borrowing FileDescriptor) throws {
    let consumer = QueueDirectory.taken + "/" + batch.consumer
    guard try batch.queue.place.exists(consumer, at: place) else { throw batch.queue.replaced() }
  }

  private func withPlace<Result: ~Copyable>(
    _ body: (borrowing FileDescriptor) throws -> Result
  ) throws -> Result {
    try reporting("use an attachment of \"\(batch.queue.name)\"", path: path) {
      try body(batch.queue.openForConsumer())
    }
  }
}

extension QueueEntry {
  /// The file that was sent with the entry; nil for one without.
  package var attachment: QueueAttachment? {
    payload.attachmentID.map { QueueAttachment($0, batch) }
  }
}
