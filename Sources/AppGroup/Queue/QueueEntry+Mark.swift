import Synchronization
import SystemCalls

/// `taken/<consumer>/<batch>.<number>.marked`: how far a consumer has come with an entry that it handles in
/// several steps, for the one who gets it again.
///
/// It is made and removed by a path through the consumer's own directory: so one that was replaced neither
/// makes nor removes what its successor finds. It goes with its batch.
extension QueueEntry {
  /// Notes how far its handling has come; nothing may be noted yet.
  ///
  /// - Parameter text: one line, for the one who gets the entry again.
  /// - Throws: `AppGroupError`: `leaseLost` when this consumer was replaced; or what the file system refuses.
  ///   It is not noted then, unless the last fsync has failed.
  /// - Complexity: create, lock, write, rename; with `.durable` two fsyncs.
  package func mark(_ text: String, durability: Durability = .standard) throws {
    try marking { place, path in
      try batch.queue.place.store(
        Array(text.utf8), as: path, durable: durability == .durable, at: place)
      isMarked.store(true, ordering: .sequentiallyConsistent)
      guard durability == .durable else { return }
      try batch.queue.place.synchronize(batch.directory, at: place)
    }
  }

  /// Withdraws the note; where there is none that is fine. It needs no space on the disk.
  ///
  /// - Throws: `AppGroupError`: as `mark`.
  package func unmark() throws {
    try marking { place, path in
      if try !batch.queue.place.discard(path, at: place) {
        guard try batch.queue.place.exists(batch.directory, at: place) else {
          throw Errno.noSuchFile
        }
      }
    }
  }

  /// What was noted by this consumer or one before; nil if nothing was.
  ///
  /// - Throws: `AppGroupError`: as `mark`.
  package func marked() throws -> String? {
    try marking { place, path in
      guard let bytes = try batch.queue.place.read(path, at: place) else {
        guard try batch.queue.place.exists(batch.directory, at: place) else {
          throw Errno.noSuchFile
        }
        return nil
      }
      isMarked.store(true, ordering: .sequentiallyConsistent)
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  /// An entry that has ended needs none.
  func removeMark() {
    guard isMarked.load(ordering: .sequentiallyConsistent) else { return }
    do {
      try unmark()
    } catch {
      // Its end stands, and the next consumer sweeps what lies beside no batch.
      return
    }
  }

  private func marking<Result>(
    _ body: (borrowing FileDescriptor, String) throws -> Result
  ) throws -> Result {
    let queue = batch.queue
    return try reporting("note how far an entry of \"\(queue.name)\" is", path: queue.path) {
      do {
        return try body(queue.openForConsumer(), batch.markPath(id.index))
      } catch let error as Errno where error == .noSuchFile {
        throw queue.replaced()
      }
    }
  }
}
