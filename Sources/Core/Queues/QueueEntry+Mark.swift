package import Containers
import Synchronization
import SystemCalls

/// `taken/<consumer>/<batch>.<number>.marked`: a consumer's progress with an entry that it handles
/// in several steps, for the consumer to which the entry is delivered again.
///
/// It is created and removed by a path through the consumer's own directory, so a replaced consumer
/// neither creates nor removes what its successor finds. It moves with its batch.
extension QueueEntry {
  /// Records progress; there must be no note yet.
  ///
  /// - Parameter text: one line, for the consumer to which the entry is delivered again.
  /// - Throws: `AppGroupError`: `leaseLost` if this consumer was replaced; or errors of the file
  ///   system. Nothing is recorded then, unless the last fsync failed.
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

  /// Removes the note, if there is one. This needs no space on the disk.
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

  /// Returns the note of this consumer or an earlier one; nil if there is none.
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

  /// Removes the note of an entry that has ended.
  func removeMark() {
    guard isMarked.load(ordering: .sequentiallyConsistent) else { return }
    do {
      try unmark()
    } catch {
      // Its end is final, and the next consumer sweeps notes without a batch.
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
