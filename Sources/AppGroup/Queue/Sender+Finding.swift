import PropertyLists
import SystemCalls

extension Queue.Sender {
  /// An entry as it was sent and what has become of it, as long as its content is anywhere: it waits,
  /// is taken, or has a receipt that is not forgotten.
  ///
  /// - Returns: nil for what is nowhere any more.
  /// - Throws: `AppGroupError`, for what the file system refuses.
  /// - Complexity: opens and reads up to three files, and then as `status(of:)`.
  public func receipt(of id: QueueEntryID) throws -> QueueReceipt? {
    try reporting("look for an entry of \"\(queue.name)\"", path: queue.path) {
      guard let place = try queue.place.directory.open(),
        let payload = try queue.place.payload(of: id, at: place)
      else { return nil }
      return QueueReceipt(
        id: id, payload: payload, status: try queue.place.status(of: id, at: place))
    }
  }
}

extension QueueDirectory {
  // In the order in which an entry moves, so that it is not missed; its receipt stands still.
  fileprivate func payload(
    of id: QueueEntryID, at place: borrowing FileDescriptor
  ) throws -> PropertyListValue? {
    let sent = Self.sentPath(id.batch)
    if let payload = try payload(of: id, in: sent, at: place),
      try !numbers(sent + Self.forgottenSuffix, at: place).contains(id.index)
    {
      return payload
    }
    if let payload = try payload(of: id, in: Self.pendingPath(id.batch), at: place) {
      return payload
    }
    for _ in 0..<interruptionLimit {
      guard let consumer = try consumer(at: place) else { return nil }
      let path = "\(Self.taken)/\(consumer)/\(id.batch.text)"
      if let payload = try payload(of: id, in: path, at: place) {
        return try settled(path, at: place).contains(id.index) ? nil : payload
      }
      // Gone from there, unless its consumer was replaced just then.
      if try self.consumer(at: place) == consumer { return nil }
    }
    throw Errno.deviceBusy
  }

  private func payload(
    of id: QueueEntryID, in path: String, at place: borrowing FileDescriptor
  ) throws -> PropertyListValue? {
    do {
      guard let bytes = try read(path, at: place) else { return nil }
      return try Batch(bytes: bytes, count: id.batch.count).entries[id.index].payload
    } catch is Batch.Unreadable {
      // Its consumer will find it so, and say so.
      return nil
    }
  }
}
