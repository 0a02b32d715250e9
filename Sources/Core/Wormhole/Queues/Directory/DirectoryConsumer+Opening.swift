import WormholePropertyLists
import WormholeSystem

/// How a consumer reads the batches that it has taken.
extension DirectoryConsumer {
  /// - Returns: nil if it has no entry to deliver.
  func open(_ file: TakenFile, at place: QueueDirectory) throws -> TakenBatch? {
    do {
      guard let bytes = try place.read(file.path) else {
        // A program removed it, or the whole queue.
        try confirm(at: place)
        return nil
      }
      let batch: Batch
      do throws(Batch.Unreadable) {
        batch = try Batch(bytes: bytes, count: file.name.total)
      } catch {
        guard Batch.isIncomplete(bytes, of: file.name.bytes) else { throw error }
        try drop(file, at: place)
        return nil
      }
      let settled = file.isTakenBefore ? try settled(file, batch, at: place) : []
      guard settled.count < file.name.count else {
        // Its consumer died when everything was settled except for the last step.
        try place.discard(file.path)
        try place.discardNotes(beside: file.path)
        return nil
      }
      let log =
        file.isTakenBefore
        ? DeliveryLog(
          try place.readNote(file.path + QueueDirectory.deliveriesSuffix),
          taken: file.name.count == 1 ? file.name.indices.first : nil) : DeliveryLog()
      return TakenBatch(
        file.name, batch, settled: settled, log: log, by: file.directory,
        in: DirectoryTaken(
          directory: terms.directory, consumer: file.directory, path: file.path),
        terms: terms)
    } catch let error as Batch.Unreadable {
      try putAside(file, error.reason, at: place)
      return nil
    }
  }

  // An entry with a note, or one that is kept, has ended, even if its consumer died before settling
  // it.
  private func settled(
    _ file: TakenFile, _ batch: Batch? = nil, at place: QueueDirectory
  ) throws -> Set<Int> {
    var settled = try place.settled(file.path)
    let hasKept = try place.exists(QueueDirectory.failed)
    for index in file.name.indices {
      let id = QueueEntryID(batch: file.name, index: index)
      if hasKept, let entry = batch?.entries[index], let failure = try place.failure(id) {
        // The step that its consumer did not reach.
        try place.keep(entry, id, reason: failure.reason, of: file.directory)
        try place.note(.failed(reason: failure.reason), of: id, from: file.directory)
      }
      if try place.exists(QueueDirectory.outcomePath(id)) { settled.insert(index) }
    }
    return settled.intersection(file.name.indices)
  }

  // The power failed before it was on the disk, so it counts as never sent. Only a sender that
  // keeps a receipt may still ask for it. A program that stored it durably, or a person, learns of
  // it by the event.
  private func drop(_ file: TakenFile, at place: QueueDirectory) throws {
    if try place.exists(QueueDirectory.sentPath(file.name)) {
      try fail(file, "the power failed before it was on the disk", at: place)
    }
    try place.putAside(file.path)
    try place.discardNotes(beside: file.path)
  }

  /// Records the failure of every entry that has not ended.
  private func fail(_ file: TakenFile, _ reason: String, at place: QueueDirectory) throws {
    let settled = try settled(file, at: place)
    for index in file.name.indices where !settled.contains(index) {
      let id = QueueEntryID(batch: file.name, index: index)
      try place.note(.failed(reason: reason), of: id, from: file.directory)
    }
  }

  // The notes first: its sender then learns of it, whatever happens next.
  private func putAside(_ file: TakenFile, _ reason: String, at place: QueueDirectory) throws {
    try fail(file, "it could not be read: \(reason)", at: place)
    try place.putAside(file.path)
    try place.discardNotes(beside: file.path)
  }
}
