import Containers
import Entries
import Monitoring
import SystemCalls
import Values

/// `keys/<sender>%2F<key>/<batch>.<index>`: entries that a newer one with the same key is to
/// supersede.
///
/// The mark is a name of the batch's file, and exists before the entry is stored; so its writer has
/// it locked until then, and no sweeper mistakes it for the mark of an entry that is gone. A later
/// send with that key lists the directory and withdraws older entries after its own is stored: a
/// crash between the two leaves both, never none. A mark is removed when its entry is withdrawn or
/// settled; one that a crash left means nothing, and the next send with that key removes it.
extension QueueDirectory {
  static func marksPath(_ sender: String, _ key: String) -> String {
    keys + "/" + EncodedName(sender + "/" + key).component
  }

  private static func markPath(_ id: QueueEntryID, _ key: String) -> String {
    "\(marksPath(id.batch.sender, key))/\(id.batch.text).\(id.index)"
  }

  /// Gives a file that is about to be stored as a batch the names of its keys.
  func mark(_ staged: String, as batch: EntryFile, _ keys: [Int: String]) throws(Errno) {
    for (index, key) in keys {
      try mark(staged, Self.marksPath(batch.sender, key), "\(batch.text).\(index)")
    }
  }

  private func mark(_ staged: String, _ marks: String, _ name: String) throws(Errno) {
    for _ in 0..<renameRaceLimit {
      do throws(Errno) {
        return try link(staged, to: marks + "/" + name)
      } catch {
        switch error {
        case .alreadyExists: return
        // Without second names any file serves; only a sweep at just this moment removes it.
        case .notPermitted, .unsupported, .noFunction:
          return try createFile(marks + "/" + name).close()
        case .noSuchFile: guard try exists(staged) else { throw error }
        default: throw error
        }
      }
      // Not there yet, or removed when it was empty.
      try makeDirectory(Self.keys)
      try makeDirectory(marks)
    }
    throw .deviceBusy
  }

  /// Removes a mark, and the directory with the last one.
  func unmark(_ id: QueueEntryID, _ key: String) {
    do throws(Errno) {
      try discard(Self.markPath(id, key))
      try removeEmpty(Self.marksPath(id.batch.sender, key))
    } catch {
      // It contains others, or it is gone. A mark that stays does no harm, and is swept.
      return
    }
  }

  /// Returns the entries of a sender with a key that are older than a given entry.
  fileprivate func marked(
    _ key: String, olderThan id: QueueEntryID
  ) throws(Errno) -> [QueueEntryID] {
    let marks = Self.marksPath(id.batch.sender, key)
    return try ids(in: marks).filter { $0.isBefore(id) }
  }
}

extension Queue.Sender {
  /// The number withdrawn under one lease: few enough for its term, because each may take two
  /// fsyncs.
  private static let withdrawnAtOnce = 16

  /// Withdraws waiting entries with a key that are older than an entry that is stored by now.
  func supersede(_ key: String, before id: QueueEntryID) {
    do {
      guard let place = try queue.open() else { return }
      var older = try place.marked(key, olderThan: id)[...]
      while !older.isEmpty {
        try superseding(Array(older.prefix(Self.withdrawnAtOnce)), key).run()
        older = older.dropFirst(Self.withdrawnAtOnce)
      }
    } catch {
      // The new entry is stored, which matters most to the caller. The older ones may be delivered
      // before it, as if their consumer had been faster; the next send with the key tries again.
      return
    }
  }

  private func superseding(_ ids: [QueueEntryID], _ key: String) -> sending Change<Void> {
    let queue = queue
    return Change(queue.directory, .init()) { lease, _ in
      guard let place = try queue.open() else { return }
      for (batch, ids) in Dictionary(grouping: ids, by: \.batch) {
        _ = try place.withdraw(Set(ids.map(\.index)), of: batch, as: .superseded, lease)
        // Including those that were taken or are gone: they no longer wait.
        for id in ids { place.unmark(id, key) }
      }
    }
  }
}
