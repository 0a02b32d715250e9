package import WormholeSystem

/// `keys/<sender>%2F<key>/<batch>.<index>`: entries that a newer one with the same key is to
/// supersede.
///
/// The mark is a name of the batch's file, and exists before the entry is stored; so its writer has
/// it locked until then, and no sweeper mistakes it for the mark of an entry that is gone. A later
/// send with that key lists the directory and withdraws older entries after its own is stored: a
/// crash between the two leaves both, never none. A mark is removed when its entry is withdrawn or
/// settled; one left by a crash means nothing, and the next send with that key removes it.
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
    // It contains others, or it is gone.
    try? removeEmpty(Self.marksPath(id.batch.sender, key))
  }

  /// Returns the entries of a sender with a key that are older than a given entry.
  package func marked(
    _ key: String, olderThan id: QueueEntryID
  ) throws(Errno) -> [QueueEntryID] {
    let marks = Self.marksPath(id.batch.sender, key)
    return try ids(in: marks).filter { $0.isBefore(id) }
  }
}
