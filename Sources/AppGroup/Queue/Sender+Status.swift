import SystemCalls

extension Queue.Sender {
  /// What has become of an entry, also one that was sent before this process began.
  ///
  /// - Throws: `AppGroupError`, for what the file system refuses.
  /// - Complexity: opens and reads the file that the entry was stored in, if it is there still.
  public func status(of id: QueueEntryID) throws -> QueueEntryStatus {
    try reporting("look for an entry of \"\(queue.name)\"", path: queue.path) {
      guard let place = try queue.place.directory.open() else { return .processed }
      if let status = try queue.place.waitingStatus(of: id, at: place) { return status }
      do {
        guard let bytes = try queue.place.read(QueueDirectory.outcomePath(id), at: place) else {
          return .processed
        }
        return OutcomeFile.status(bytes)
      } catch let error as Batch.Unreadable {
        return .failed(reason: "the note of its end is damaged: \(error.reason)")
      }
    }
  }

  /// The entries of this sender that ended otherwise than processed, and were not forgotten, in the
  /// order in which they were sent.
  ///
  /// - Throws: `AppGroupError`, for what the file system refuses.
  /// - Complexity: one listing, and one file read for each.
  public func outcomes() throws -> [(id: QueueEntryID, status: QueueEntryStatus)] {
    try reporting("look for outcomes of \"\(queue.name)\"", path: queue.path) {
      guard let place = try queue.place.directory.open() else { return [] }
      let entries = try SharedContainer.entries(QueueDirectory.outcomes, at: place.rawValue) ?? []
      let ids = entries.compactMap { OutcomeFile.id($0.name.text) }
        .filter { $0.sender.utf8.elementsEqual(name.utf8) }
        .sorted { ($0.batch, $0.index) < ($1.batch, $1.index) }
      // What is cancelled and not yet out of the way is told when it is.
      return try ids.compactMap { id in
        let status = try status(of: id)
        return [.stored, .taken, .processed].contains(status) ? nil : (id, status)
      }
    }
  }

  /// Forgets how an entry ended, once the sender has drawn its conclusions; it then counts as
  /// processed. Without this the note of an entry that failed, expired or was cancelled stays.
  ///
  /// - Throws: `AppGroupError`, for what the file system refuses.
  public func forget(_ id: QueueEntryID) throws {
    try reporting("forget an entry of \"\(queue.name)\"", path: queue.path) {
      guard let place = try queue.place.directory.open() else { return }
      try queue.place.discard(QueueDirectory.outcomePath(id), at: place)
    }
  }
}

extension QueueDirectory {
  /// Whether an entry waits, is taken or cancelled, as far as its batch says so; nil when the batch
  /// is gone.
  func waitingStatus(
    of id: QueueEntryID, at place: borrowing FileDescriptor
  ) throws -> QueueEntryStatus? {
    for _ in 0..<interruptionLimit {
      if let status = try status(of: id, in: Self.pendingPath(id.batch), .stored, at: place) {
        return status
      }
      guard let consumer = try consumer(at: place) else { return nil }
      let path = "\(Self.taken)/\(consumer)/\(id.batch.text)"
      if let status = try status(of: id, in: path, .taken, at: place) {
        let done = try settled(path, at: place)
        guard status == .taken, done.contains(id.index) else { return status }
        return try hasOutcome(id, at: place) ? nil : .processed
      }
      // Gone from there, unless its consumer was replaced just then.
      if try self.consumer(at: place) == consumer { return nil }
    }
    throw Errno.deviceBusy
  }

  private func status(
    of id: QueueEntryID, in path: String, _ otherwise: QueueEntryStatus,
    at place: borrowing FileDescriptor
  ) throws -> QueueEntryStatus? {
    do {
      guard let bytes = try read(path, at: place) else { return nil }
      let batch = try Batch(bytes: bytes, count: id.batch.count)
      return batch.entries[id.index].payload == nil ? .cancelled : otherwise
    } catch is Batch.Unreadable {
      // Its consumer will find it so.
      return otherwise
    }
  }

  /// Which entries of a taken batch are settled.
  func settled(_ path: String, at place: borrowing FileDescriptor) throws -> Set<Int> {
    do {
      guard let bytes = try read(path + Self.doneSuffix, at: place) else { return [] }
      let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
      return Set(lines.compactMap { Int($0) })
    } catch is Batch.Unreadable {
      // Somebody planted it: then everything is delivered again.
      return []
    }
  }
}
