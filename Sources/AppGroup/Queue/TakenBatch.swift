import Synchronization
import SystemCalls

/// A batch that this consumer has taken: its entries are settled one by one, and with the last of
/// them the file goes.
final class TakenBatch: Sendable {
  let name: BatchName
  let entries: [Batch.Entry]
  let queue: Queue
  let consumer: String
  private let terms: DeliveryTerms
  private let state: Mutex<State>

  private struct State {
    var unsettled: Set<Int>
    var log: DeliveryLog
  }

  init(
    _ name: BatchName, _ batch: Batch, settled: Set<Int>, _ log: DeliveryLog, in queue: Queue,
    by consumer: String, _ terms: DeliveryTerms
  ) {
    self.name = name
    self.queue = queue
    self.consumer = consumer
    self.terms = terms
    entries = batch.entries
    let unsettled = Set(batch.entries.indices).subtracting(settled)
    state = Mutex(State(unsettled: unsettled, log: log))
  }

  /// The consumer's, in which it lies.
  var directory: String { QueueDirectory.taken + "/" + consumer }

  private var path: String { directory + "/" + name.text }

  func markPath(_ index: Int) -> String { "\(path).\(index)\(QueueDirectory.markSuffix)" }

  func isSettled(_ index: Int) -> Bool { state.withLock { !$0.unsettled.contains(index) } }

  // MARK: Delivering

  /// Until when an entry was given back by a consumer that is gone; nil if it was not.
  func due(_ index: Int) -> ContinuousClock.Instant? { state.withLock { $0.log.due(index) } }

  /// Counts a delivery that is about to happen.
  ///
  /// - Returns: how often it is delivered with this one; nil when that was too often: it has failed, and
  ///   is kept.
  /// - Throws: `leaseLost` when this consumer was replaced.
  func deliver(_ index: Int) throws -> Int? {
    let before = state.withLock { $0.log.deliveries(of: index) }
    guard before < terms.maximumDeliveries ?? .max else {
      try fail(index, after: before)
      return nil
    }
    // That a batch of one was taken counts the first.
    if before > 0 || name.count > 1 { try log(DeliveryLog.line(index)) }
    state.withLock { $0.log.noteDelivery(of: index) }
    return before + 1
  }

  /// Gives an entry back, to be delivered again after a pause; or ends it as failed when it was
  /// delivered as often as may be.
  ///
  /// - Throws: `leaseLost` when this consumer was replaced: then its successor has the entry.
  func release(_ index: Int, after pause: Duration) throws {
    let (isSettled, count) = state.withLock {
      (!$0.unsettled.contains(index), $0.log.deliveries(of: index))
    }
    guard !isSettled else { return }
    guard count < terms.maximumDeliveries ?? .max else { return try fail(index, after: count) }
    try log(DeliveryLog.line(index, pause: pause))
    terms.released.giveBack(.init(batch: self, index: index, due: .now + pause))
  }

  private func fail(_ index: Int, after count: Int) throws {
    let times = count == 1 ? "once" : "\(count) times"
    let reason = "it was delivered \(times), and not processed"
    try settle(index, as: .failed(reason: reason), isKept: true)
  }

  private func log(_ line: String) throws {
    try reporting("count a delivery of \"\(queue.name)\"", path: queue.path) {
      let place = try queue.openForConsumer()
      do {
        try queue.place.append(line, to: path + QueueDirectory.deliveriesSuffix, at: place)
        state.withLock { $0.log.isWritten = true }
      } catch let error as Errno {
        // Without room it is delivered all the same: what is processed makes room.
        if error == .noSpace { return }
        throw error == .noSuchFile ? queue.replaced() : error
      }
    }
  }

  // MARK: Settling

  /// Notes that an entry is not to be delivered again, and how it ended if it was not processed.
  ///
  /// - Parameter isKept: whether it is kept to be looked at, and perhaps sent again.
  /// - Throws: `leaseLost` when this consumer was replaced: then its successor has the entry.
  func settle(
    _ index: Int, as status: QueueEntryStatus = .processed, isKept: Bool = false
  ) throws {
    try reporting("settle an entry of \"\(queue.name)\"", path: queue.path) {
      try state.withLock { state in
        guard state.unsettled.contains(index) else { return }
        let place = try queue.openForConsumer()
        do {
          if isKept, let reason = status.reason {
            try queue.place.keep(
              entries[index], .init(batch: name, index: index), reason, of: consumer, at: place)
          }
          // A batch of one that is delivered for the first time has nothing beside it.
          let hasNotes = name.count > 1 || state.log.isWritten
          try settle(
            index, status, isLast: state.unsettled.count == 1, hasNotes: hasNotes, at: place)
        } catch let error as Errno where error == .noSuchFile {
          throw queue.replaced()
        }
        state.unsettled.remove(index)
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
    _ index: Int, _ status: QueueEntryStatus, isLast: Bool, hasNotes: Bool,
    at place: borrowing FileDescriptor
  ) throws {
    if status != .processed {
      try queue.place.note(
        status, of: .init(batch: name, index: index), from: consumer, at: place)
    }
    guard isLast else {
      return try queue.place.append(
        "\(index)\n", to: path + QueueDirectory.doneSuffix, at: place)
    }
    // The batch first: what is settled of it says nothing without it.
    try removeFile(path, at: place.rawValue)
    guard hasNotes else { return }
    do throws(Errno) {
      try queue.place.discard(path + QueueDirectory.doneSuffix, at: place)
      try queue.place.discard(path + QueueDirectory.deliveriesSuffix, at: place)
    } catch {
      // All is settled; what is left of it the next consumer sweeps.
      return
    }
  }
}

/// How a consumer delivers.
struct DeliveryTerms: Sendable {
  /// After so many deliveries an entry has failed; nil for any number.
  let maximumDeliveries: Int?
  let released: ReleasedEntries
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
