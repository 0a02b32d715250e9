import WormholeSystem

/// A batch in its consumer's directory: its entries are settled one by one, and the file is removed
/// with the last of them.
struct DirectoryTaken: TakenBatchStorage {
  let directory: OpenQueue
  /// The name of the directory in `taken/`.
  let consumer: String
  /// The batch's file, relative to the queue's directory.
  let path: String

  private func open() throws -> QueueDirectory {
    try directory.openForConsumer(waitsForCopies: false)
  }

  /// Each step finds its directory gone if this consumer was replaced.
  func confirm(looks: Bool, until deadline: ContinuousClock.Instant?) throws {
    guard try !looks || open().exists(path) else { throw Errno.noSuchFile }
  }

  func successor() throws -> LeaseHolder? {
    let place = try open()
    let batch = path.dropFirst(ownPath.count)
    let owners = try place.consumers().filter {
      try place.exists(QueueDirectory.takenPath($0) + batch)
    }
    return try owners.first.flatMap {
      try OtherConsumers.owner(of: $0, in: directory.queue)?.holder
    }
  }

  func takeAttachment(_ id: String) throws { try open().takeAttachment(id, by: consumer) }

  /// The directory shows it.
  func noteMovedAway(_ id: String) {}

  func log(_ line: String, until deadline: ContinuousClock.Instant?) throws -> Bool {
    let place = try open()
    do throws(Errno) {
      try place.append(line, to: path + QueueDirectory.deliveriesSuffix)
      return true
    } catch  where error.isLackOfRoom {
      // Without free space it is still delivered, because processed entries make space.
      return false
    }
  }

  // MARK: Settling

  func settle(_ end: Settlement, until deadline: ContinuousClock.Instant?) throws {
    let place = try open()
    // The first record is final: an entry that is kept, or has a note, is not delivered again.
    var isFinal = false
    do {
      if end.isKept, let reason = end.status.reason {
        try place.keep(end.entry, end.id, reason: reason, of: consumer)
        isFinal = true
      }
      if end.status != .processed {
        try place.note(end.status, of: end.id, from: consumer)
        isFinal = true
      }
      if end.isLast {
        try discard(hasNotes: end.hasNotes, at: place)
      } else {
        try place.makingRoom { () throws(Errno) in
          try place.append("\(end.id.index)\n", to: path + QueueDirectory.doneSuffix)
        }
      }
    } catch let error as Errno
      where error == .noSuchFile && isFinal && !LeaseFault.forgettingRecord.isActive
    {
      // This consumer was replaced. The next one completes the rest.
    }
    if let key = end.entry.key { place.unmark(end.id, key) }
    if let attachment = end.entry.payload?.attachmentID {
      place.removeAttachment(attachment, of: consumer)
    }
    if end.isLast { removeTakenOver(at: place) }
  }

  func finish(hasNotes: Bool, until deadline: ContinuousClock.Instant?) throws {
    // If this consumer was replaced, all entries have ended. The next one finds that.
    let place = try open()
    _ = try ifPresent(discard(hasNotes: hasNotes, at: place))
    removeTakenOver(at: place)
  }

  /// Removes the directory of a dead consumer, which ends with its last entry.
  private func removeTakenOver(at place: QueueDirectory) {
    guard QueueDirectory.isTakenOver(consumer) else { return }
    // It has other entries, or another consumer has it by now.
    _ = try? place.removeIfEmpty(ownPath)
  }

  // The batch first: the record of settled entries means nothing without it. A batch of one that is
  // delivered for the first time has nothing beside it.
  private func discard(hasNotes: Bool, at place: QueueDirectory) throws(Errno) {
    if !LeaseFault.keepingBatches.isActive { try place.remove(path) }
    // All are settled; the next consumer sweeps the leftovers.
    if hasNotes { try? place.discardNotes(beside: path) }
  }

  // MARK: Marking

  private func markPath(_ index: Int) -> String {
    "\(path).\(index)\(QueueDirectory.markSuffix)"
  }

  private var ownPath: String { QueueDirectory.takenPath(consumer) }

  func mark(_ index: Int, _ text: String?, durability: Durability) throws {
    let place = try open()
    guard let text else {
      if try !place.discard(markPath(index)), try !place.exists(ownPath) { throw Errno.noSuchFile }
      return
    }
    try place.store(
      Array(text.utf8), as: markPath(index), durable: durability == .durable)
    if durability == .durable { try place.synchronize(ownPath) }
  }

  func marked(_ index: Int) throws -> String? {
    let place = try open()
    guard let bytes = try place.read(markPath(index)) else {
      guard try place.exists(ownPath) else { throw Errno.noSuchFile }
      return nil
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
