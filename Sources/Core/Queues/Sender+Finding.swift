import Containers
import Entries
import SystemCalls

extension Queue.Sender {
  /// Returns an entry as it was sent, and its status, as long as its content exists anywhere: it
  /// waits, is taken, or has a receipt that is not cleared.
  ///
  /// - Returns: nil if it no longer exists anywhere.
  /// - Throws: `AppGroupError` for errors of the file system.
  /// - Complexity: opens and reads up to three files, and then as `status(of:)`.
  public func receipt(of id: QueueEntryID) throws -> QueueReceipt? {
    try reporting("look for an entry of \"\(queue.name)\"", path: queue.path) {
      guard let place = try queue.place.directory.open(),
        let entry = try queue.place.entry(id, at: place), let payload = entry.payload
      else { return nil }
      return QueueReceipt(
        id: id, payload: payload, key: entry.key,
        status: try queue.place.status(of: id, at: place))
    }
  }
}

extension QueueDirectory {
  // In the order in which an entry moves, so that it is not missed; its receipt does not move.
  fileprivate func entry(
    _ id: QueueEntryID, at place: borrowing FileDescriptor
  ) throws -> Batch.Entry? {
    let sent = Self.sentPath(id.batch)
    if let entry = try entry(id, in: sent, at: place),
      try !numbers(sent + Self.forgottenSuffix, at: place).contains(id.index)
    {
      return entry
    }
    if let entry = try entry(id, in: Self.pendingPath(id.batch), at: place) { return entry }
    for _ in 0..<renameRaceLimit {
      guard let consumer = try consumer(at: place) else { return nil }
      let path = "\(Self.taken)/\(consumer)/\(id.batch.text)"
      if let entry = try entry(id, in: path, at: place) {
        return try settled(path, at: place).contains(id.index) ? nil : entry
      }
      // Gone from there, unless its consumer has just been replaced.
      if try self.consumer(at: place) == consumer { return nil }
    }
    throw Errno.deviceBusy
  }

  /// - Returns: nil also for a withdrawn entry.
  private func entry(
    _ id: QueueEntryID, in path: String, at place: borrowing FileDescriptor
  ) throws -> Batch.Entry? {
    do {
      guard let bytes = try read(path, at: place) else { return nil }
      let entry = try Batch(bytes: bytes, count: id.batch.count).entries[id.index]
      return entry.payload == nil ? nil : entry
    } catch is Batch.Unreadable {
      // Its consumer will find the same, and report it.
      return nil
    }
  }
}
