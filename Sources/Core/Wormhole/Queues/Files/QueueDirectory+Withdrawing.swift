import WormholeSystem

/// Withdrawing entries from a waiting batch: it is exchanged with one in which they are withdrawn.
/// A consumer takes one of the two.
extension QueueDirectory {
  /// - Parameters:
  ///   - status: how the entries end.
  ///   - lease: the queue's lease; if two processes withdrew at once, the second would bring back
  ///     entries that the first has withdrawn from the same batch.
  /// - Returns: whether all entries have ended this way, not otherwise, and are not taken; and how
  ///   many of them this call has withdrawn.
  package func withdraw(
    _ indices: Set<Int>, of name: EntryFile, as status: QueueEntryStatus, _ lease: Lease
  ) throws -> (isComplete: Bool, count: Int) {
    let path = Self.pendingPath(name)
    guard try name.count == 1 || exists(path) else {
      // Workers have shared it, or taken it.
      return try indices.reduce((true, 0)) { total, index in
        let one = try withdraw([index], of: name.of(index), as: status, lease)
        return (total.0 && one.isComplete, total.1 + one.count)
      }
    }
    var batch: Batch
    do {
      guard let bytes = try read(path) else {
        return (try statuses(of: name.whole, indices).values.allSatisfy { $0 == status }, 0)
      }
      batch = try Batch(bytes: bytes, count: name.total)
    } catch let error as Batch.Unreadable {
      // A caller that cancels all of them must not believe that it has.
      if let refusal = error.refusal { throw refusal }
      // Its consumer puts it aside, and reports it.
      return (false, 0)
    }
    let waiting = indices.filter { batch.entries[$0].payload != nil }
    let keys = waiting.compactMap { index in batch.entries[index].key.map { (index, $0) } }
    if !waiting.isEmpty {
      for index in waiting { batch.entries[index] = .init(withdrawnAs: status) }
      guard try lease.exchange(try batch.bytes(), with: path) else { return (false, 0) }
      try synchronize(Self.pending)
    }
    for (index, key) in keys { unmark(.init(batch: name, index: index), key) }
    if name.indices.allSatisfy({ batch.entries[$0].payload == nil }) {
      // No process sees the batch any longer; the notes first, or it would count as processed.
      for index in name.indices {
        let withdrawal = batch.entries[index].withdrawal
        try note(withdrawal, of: .init(batch: name, index: index), from: nil)
      }
      try discard(path)
    }
    return (indices.allSatisfy { batch.entries[$0].withdrawal == status }, waiting.count)
  }
}

extension Lease {
  /// Exchanges a file with new content, and removes the old one.
  ///
  /// - Returns: false if there is no such file: only an existing file is exchanged.
  /// - Throws: `leaseLost`; nothing has changed then.
  fileprivate func exchange(_ bytes: [UInt8], with path: String) throws -> Bool {
    let directory = stagingPlace.directory
    let entry = nextEntry()
    do throws(Errno) {
      let file = try site.home.access.createFile(entry, at: directory)
      try file.writeAll(bytes)
      // Other entries in it may be durable.
      try file.synchronize()
      try rename(
        entry, at: directory, to: site.layout.fromHeld(path), at: held.descriptor.rawValue,
        .exchange)
    } catch {
      if error == .noSuchFile, try held.isRemoved() { throw lost() }
      try discard(entry)
      switch error {
      case .noSuchFile: return false
      case .unsupported:
        throw WormholeError(
          .inputOutput, "withdraw an entry", path: site.path,
          reason: "its file system cannot exchange two files (renameat2(2), RENAME_EXCHANGE)",
          remedy: "let its consumer have it, or keep the container on another file system",
          errorNumber: error.rawValue)
      default: throw error
      }
    }
    try discard(entry)
    return true
  }
}

/// `keys/<sender>%2F<key>/<batch>.<index>`: entries that a newer one with the same key is to
/// supersede.
///
/// The mark is a name of the batch's file, and exists before the entry is stored; so its writer has
/// it locked until then, and no sweeper mistakes it for the mark of an entry that is gone. A later
/// send with that key lists the directory and withdraws older entries after its own is stored: a
/// crash between the two leaves both, never none. An older entry that is stored only after that
/// listing finds the newer one, and withdraws itself. A mark is removed when its entry is withdrawn
/// or settled; one left by a crash means nothing, and the next send with that key removes it.
extension QueueDirectory {
  package static func marksPath(_ sender: String, _ key: String) -> String {
    keys + "/" + EncodedName(sender + "/" + key).component
  }

  private static func markPath(_ id: QueueEntryID, _ key: String) -> String {
    "\(marksPath(id.batch.sender, key))/\(id.batch.text).\(id.index)"
  }

  /// Gives a file that is about to be stored as a batch the names of its keys.
  package func mark(_ staged: String, as batch: EntryFile, _ keys: [Int: String]) throws(Errno) {
    for (index, key) in keys {
      try mark(staged, Self.marksPath(batch.sender, key), name: "\(batch.text).\(index)")
    }
  }

  private func mark(_ staged: String, _ marks: String, name: String) throws(Errno) {
    for _ in 0..<renameRaceLimit {
      do throws(Errno) {
        return try link(staged, to: marks + "/" + name)
      } catch {
        switch error {
        case .alreadyExists: return
        // Without second names any file will do; only a sweep at this very moment removes it.
        case .notPermitted, .unsupported, .noFunction:
          return try createFile(marks + "/" + name).close()
        case .noSuchFile: guard try exists(staged) else { throw error }
        default: throw error
        }
      }
      // Not yet created, or removed when it was empty.
      try makeDirectory(Self.keys)
      try makeDirectory(marks)
    }
    throw .deviceBusy
  }

  /// Removes a mark, and the directory with the last one.
  package func unmark(_ id: QueueEntryID, _ key: String) {
    // A mark that stays does no harm, and is swept.
    guard (try? discard(Self.markPath(id, key))) != nil else { return }
    removeMarksIfEmpty(id.batch.sender, key)
  }

  /// Removes a mark unless its entry waits, or is about to be stored.
  package func unmarkIfGone(_ id: QueueEntryID, _ key: String) {
    sweepMark(Self.markPath(id, key))
    removeMarksIfEmpty(id.batch.sender, key)
  }

  private func removeMarksIfEmpty(_ sender: String, _ key: String) {
    // It contains others, or it is gone.
    _ = try? removeIfEmpty(Self.marksPath(sender, key))
  }

  /// Returns the entries with a key that give way once an entry is stored: the older ones, and the
  /// entry itself if another process has meanwhile stored a newer one under the sender's name.
  package func superseded(_ key: String, by id: QueueEntryID) throws -> [QueueEntryID] {
    let marked = try ids(in: Self.marksPath(id.batch.sender, key))
    // Before it is stored, an entry cannot be told from one that is processed.
    let isLate =
      try !LeaseFault.supersedingOlderOnly.isActive
      && marked.contains { try id.isBefore($0) && status(of: $0) != .processed }
    return marked.filter { $0.isBefore(id) } + (isLate ? [id] : [])
  }
}
