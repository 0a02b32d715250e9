import Synchronization
import WormholeSystem

/// A batch that this consumer has taken: its entries are settled one by one, and the file is
/// removed with the last of them.
package final class TakenBatch: Sendable {
  package let name: EntryFile
  package let entries: [Batch.Entry]
  /// The consumer's directory in `taken/`, which has the files that accompany its entries.
  package let consumer: String
  package let store: any TakenStore
  private let terms: DeliveryTerms
  private let state: Mutex<State>

  private enum Stage {
    case unsettled
    /// A thread is settling it.
    case underWay
    case settled
  }

  private struct State {
    var stages: [Stage]
    var log: DeliveryLog
    /// The number of entries that are not settled.
    var remaining: Int { stages.count { $0 != .settled } }

    /// - Returns: whether all other entries are settled already, and whether there are notes to
    ///   remove; nil if it is settled, or about to be.
    mutating func begin(_ index: Int) -> (isLast: Bool, hasNotes: Bool)? {
      guard stages[index] == .unsettled else { return nil }
      stages[index] = .underWay
      return (remaining == 1, log.isWritten)
    }

    /// Ends the settling that `begin` began.
    ///
    /// - Returns: whether all entries are settled now.
    mutating func end(_ index: Int, isSettled: Bool) -> Bool {
      stages[index] = isSettled ? .settled : .unsettled
      return remaining == 0
    }
  }

  package init(
    _ name: EntryFile, _ batch: Batch, settled: Set<Int>, log: DeliveryLog,
    by consumer: String, in store: any TakenStore, terms: DeliveryTerms
  ) {
    self.name = name
    self.consumer = consumer
    self.terms = terms
    entries = batch.entries
    self.store = store
    let stages = batch.entries.indices.map { settled.contains($0) ? Stage.settled : .unsettled }
    state = Mutex(State(stages: stages, log: log))
  }

  package var queue: Queue { terms.queue }

  /// Opens the queue's directory; see `OpenQueue`.
  package func open() throws -> QueueDirectory { try terms.directory.openForConsumer() }

  /// Verifies that no other consumer can have the batch.
  package func confirm() throws {
    try noticingLoss(store.confirmNow)
  }

  /// Takes a step; if it shows that the batch is lost, the error names the new consumer.
  func noticingLoss<Result>(_ step: () throws -> Result) throws -> Result {
    do {
      return try step()
    } catch  where error.isLossOfConsumer {
      // The loss matters more than the name of the new consumer.
      throw queue.replaced(by: try? store.successor())
    }
  }

  func isSettled(_ index: Int) -> Bool { state.withLock { $0.stages[index] == .settled } }

  // MARK: Delivering

  /// Returns the time until which a consumer that is gone gave an entry back; nil if it did not.
  func due(_ index: Int) -> ContinuousClock.Instant? { state.withLock { $0.log.due(index) } }

  /// Counts a delivery that is about to happen.
  ///
  /// - Returns: the number of deliveries including this one; nil if the limit is exceeded: the
  ///   entry has then failed, and is kept.
  /// - Throws: `leaseLost` if this consumer was replaced.
  func deliver(_ index: Int, until deadline: ContinuousClock.Instant?) throws -> Int? {
    let before = state.withLock { $0.log.deliveries(of: index) }
    guard before < terms.consumer.maximumDeliveries ?? .max else {
      try fail(index, after: before, until: deadline)
      return nil
    }
    // The first delivery of a batch of one is counted by the fact that it was taken.
    if before > 0 || name.count > 1 { try log(DeliveryLog.line(index), until: deadline) }
    state.withLock { $0.log.noteDelivery(of: index) }
    try store.confirm(until: deadline)
    return before + 1
  }

  /// Gives an entry back, to be delivered again after a pause; or ends it as failed if it has
  /// reached the limit of deliveries.
  ///
  /// - Throws: `leaseLost` if this consumer was replaced; its successor then has the entry.
  func release(_ index: Int, after pause: Duration) throws {
    let (isSettled, count) = state.withLock {
      ($0.stages[index] == .settled, $0.log.deliveries(of: index))
    }
    guard !isSettled else { return }
    guard count < terms.consumer.maximumDeliveries ?? .max else {
      return try fail(index, after: count, until: nil)
    }
    try log(DeliveryLog.line(index, pause: pause), until: nil)
    terms.add(.init(batch: self, index: index, due: .now + pause))
    terms.wake.raise()
  }

  private func fail(
    _ index: Int, after count: Int, until deadline: ContinuousClock.Instant?
  ) throws {
    let times = count == 1 ? "once" : "\(count) times"
    let reason = "it was delivered \(times), and not processed"
    try settle(index, as: .failed(reason: reason), isKept: true, until: deadline)
  }

  private func log(_ line: String, until deadline: ContinuousClock.Instant?) throws {
    try queue.attempt("count a delivery of") {
      let isWritten = try noticingLoss { try store.log(line, until: deadline) }
      if isWritten { state.withLock { $0.log.isWritten = true } }
    }
  }

  // MARK: Settling

  /// Records that an entry must not be delivered again, and how it ended if it was not processed.
  ///
  /// - Parameter isKept: whether it is kept for inspection, and possibly sent again.
  /// - Throws: `leaseLost` if this consumer was replaced; its successor then has the entry.
  func settle(
    _ index: Int, as status: QueueEntryStatus = .processed, isKept: Bool = false,
    until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try queue.attempt("settle an entry of") {
      guard let begun = state.withLock({ $0.begin(index) }) else { return }
      let settlement = Settlement(
        id: QueueEntryID(batch: name, index: index), entry: entries[index], status: status,
        isKept: isKept, isLast: begun.isLast, hasNotes: name.count > 1 || begun.hasNotes)
      do {
        try noticingLoss { try store.settle(settlement, until: deadline) }
        // If two threads settle the last two entries, neither finds its entry to be the last: the
        // thread that finishes last ends the batch.
        let isOver = state.withLock { $0.end(index, isSettled: true) }
        if isOver, !begun.isLast {
          try noticingLoss { try store.finish(hasNotes: settlement.hasNotes, until: deadline) }
        }
      } catch {
        _ = state.withLock { $0.end(index, isSettled: false) }
        throw error
      }
    }
  }
}
