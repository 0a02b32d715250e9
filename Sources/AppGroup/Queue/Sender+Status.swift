import SystemCalls

extension Queue.Sender {
  /// What has become of an entry, also one that was sent before this process began.
  ///
  /// - Throws: `AppGroupError`, for what the file system refuses.
  /// - Complexity: opens and reads the file that the entry was stored in, if it is there still.
  public func status(of id: QueueEntryID) throws -> QueueEntryStatus {
    try statuses(of: id.batch, [id.index])[id.index] ?? .processed
  }

  /// - Parameter readsContent: see `QueueDirectory.statuses`.
  func statuses(
    of batch: BatchName, _ indices: Set<Int>, readsContent: Bool = true
  ) throws -> [Int: QueueEntryStatus] {
    try reporting("look for an entry of \"\(queue.name)\"", path: queue.path) {
      guard let place = try queue.place.directory.open() else {
        return Dictionary(uniqueKeysWithValues: indices.map { ($0, .processed) })
      }
      return try queue.place.statuses(
        of: batch, indices, readsContent: readsContent, at: place)
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
        let status = try queue.place.status(of: id, at: place)
        return status.isEnd && status != .processed ? (id, status) : nil
      }
    }
  }
}

extension QueueDirectory {
  /// What has become of an entry.
  func status(
    of id: QueueEntryID, at place: borrowing FileDescriptor
  ) throws -> QueueEntryStatus {
    try statuses(of: id.batch, [id.index], at: place)[id.index] ?? .processed
  }
}
