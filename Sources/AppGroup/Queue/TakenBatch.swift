import Synchronization
import SystemCalls

/// A batch that this consumer has taken: its entries are settled one by one, and with the last of
/// them the file goes.
final class TakenBatch: Sendable {
  let name: BatchName
  let isRedelivery: Bool
  let entries: [Batch.Entry]
  let queue: Queue
  let consumer: String
  private let unsettled: Mutex<Set<Int>>

  init(
    _ name: BatchName, _ batch: Batch, settled: Set<Int>, isRedelivery: Bool, in queue: Queue,
    by consumer: String
  ) {
    self.name = name
    self.isRedelivery = isRedelivery
    self.queue = queue
    self.consumer = consumer
    entries = batch.entries
    unsettled = Mutex(Set(batch.entries.indices).subtracting(settled))
  }

  /// The consumer's, in which it lies.
  var directory: String { QueueDirectory.taken + "/" + consumer }

  private var path: String { directory + "/" + name.text }

  func markPath(_ index: Int) -> String { "\(path).\(index)\(QueueDirectory.markSuffix)" }

  func isSettled(_ index: Int) -> Bool { unsettled.withLock { !$0.contains(index) } }

  /// Notes that an entry is not to be delivered again, and how it ended if it was not processed.
  ///
  /// - Throws: `leaseLost` when this consumer was replaced: then its successor has the entry.
  func settle(_ index: Int, as status: QueueEntryStatus = .processed) throws {
    try reporting("settle an entry of \"\(queue.name)\"", path: queue.path) {
      try unsettled.withLock { unsettled in
        guard unsettled.contains(index) else { return }
        let place = try queue.openForConsumer()
        do {
          try settle(index, status, isLast: unsettled.count == 1, at: place)
        } catch let error as Errno where error == .noSuchFile {
          throw queue.replaced()
        }
        unsettled.remove(index)
        if let key = entries[index].key {
          queue.place.unmark(.init(batch: name, index: index), key, at: place)
        }
        if let id = entries[index].payload?.attachmentID {
          queue.place.removeAttachment(id, of: consumer, at: place)
        }
      }
    }
  }

  // The note comes first, and stands: an entry with a note is not delivered again.
  private func settle(
    _ index: Int, _ status: QueueEntryStatus, isLast: Bool, at place: borrowing FileDescriptor
  ) throws {
    if status != .processed {
      try queue.place.note(
        status, of: .init(batch: name, index: index), from: consumer, at: place)
    }
    guard isLast else {
      return try queue.place.append(index, to: path + QueueDirectory.doneSuffix, at: place)
    }
    // The batch first: what is settled of it says nothing without it.
    try removeFile(path, at: place.rawValue)
    guard name.count > 1 else { return }
    do throws(Errno) {
      try queue.place.discard(path + QueueDirectory.doneSuffix, at: place)
    } catch {
      // All is settled; what is left of it the next consumer sweeps.
      return
    }
  }
}

extension Queue {
  /// Opens the queue's directory. A consumer does not make it: with it went what it has taken.
  func openForConsumer() throws -> FileDescriptor {
    guard let place = try place.directory.open() else { throw replaced() }
    return place
  }

  func replaced() -> AppGroupError {
    AppGroupError(
      .leaseLost, "consume \"\(name)\"", path: path,
      reason: "another consumer has replaced this one, because it was stopped, or the queue was "
        + "removed; what was not acknowledged is delivered to it again",
      remedy: "consume again")
  }
}
