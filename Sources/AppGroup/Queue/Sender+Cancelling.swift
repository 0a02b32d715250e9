import PropertyLists
import SystemCalls

extension Queue.Sender {
  /// Takes an entry back, unless a consumer has taken it already: it is cancelled or delivered,
  /// never both.
  ///
  /// - Parameter deadline: until when to wait for others who cancel; by default 10 seconds from now.
  /// - Returns: whether it is cancelled; false when it was taken, or has ended otherwise.
  /// - Throws: `AppGroupError`: `timedOut`, naming who cancels, or what the file system refuses
  ///   (some do not know how to exchange two files). The entry is where it was then.
  /// - Complexity: the file that it was stored in is written anew, with two fsyncs.
  @discardableResult
  public func cancel(
    _ id: QueueEntryID, until deadline: ContinuousClock.Instant? = nil
  ) throws -> Bool {
    try cancellation(id, deadline).run()
  }

  /// Takes an entry back; see the form without `async`.
  @discardableResult
  public func cancel(
    _ id: QueueEntryID, until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Bool {
    try await runSuspending { self.cancellation(id, deadline) }
  }

  // Under a lease, for of two who cancel at once the second would bring back what the first has
  // cancelled in the same batch.
  private func cancellation(
    _ id: QueueEntryID, _ deadline: ContinuousClock.Instant?
  ) -> sending Change<Bool> {
    let queue = queue
    let value = Value(container: queue.container, identifier: queue.name, kind: .queue)
    let terms = Change<Bool>.Terms(deadline: deadline ?? .now + Value.standardWait)
    return Change(value, terms) { _ in
      { lease in
        guard let place = try queue.place.directory.open() else { return false }
        return try queue.place.cancel(id, lease, at: place)
      }
    }
  }
}

extension QueueDirectory {
  fileprivate func cancel(
    _ id: QueueEntryID, _ lease: Lease, at place: borrowing FileDescriptor
  ) throws -> Bool {
    let path = Self.pendingPath(id.batch)
    var batch: Batch
    do {
      guard let bytes = try read(path, at: place) else {
        return try status(of: id, at: place) == .cancelled
      }
      batch = try Batch(bytes: bytes, count: id.batch.count)
    } catch is Batch.Unreadable {
      // Its consumer puts it aside, and says so.
      return false
    }
    if batch.entries[id.index].payload != nil {
      batch.entries[id.index] = Batch.Entry()
      guard try lease.exchange(try batch.bytes(), with: path) else { return false }
      try synchronize(Self.pending, at: place)
    }
    guard batch.isCancelled else { return true }
    // Nobody has anything of it any more; the notes first, or it would count as processed.
    for index in batch.entries.indices {
      try note(.cancelled, of: .init(batch: id.batch, index: index), from: nil, at: place)
    }
    try discard(path, at: place)
    return true
  }
}

extension Lease {
  /// Exchanges a file with new content, and removes the old one.
  ///
  /// - Returns: false when there is no such file: only what is there is exchanged.
  /// - Throws: `leaseLost`; nothing has changed then.
  fileprivate func exchange(_ bytes: [UInt8], with path: String) throws -> Bool {
    let directory = stagingPlace.directory
    let entry = nextEntry()
    do throws(Errno) {
      let file = try site.home.createFile(entry, at: directory)
      try file.writeAll(bytes)
      // Other entries in it may be durable.
      try file.synchronize()
      try rename(
        entry, at: directory, to: site.layout.fromHeld + path, at: held.descriptor.rawValue,
        .exchange)
    } catch {
      guard error == .noSuchFile else { throw error }
      if try held.isRemoved() { throw lost() }
      try discardOld(entry)
      return false
    }
    try discardOld(entry)
    return true
  }
}
