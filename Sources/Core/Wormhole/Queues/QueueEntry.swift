public import FoundationEssentials
import Synchronization
public import WormholePropertyLists
import WormholeSystem

/// An entry that a consumer has taken, to be acknowledged when it has been handled.
///
/// An entry that is neither acknowledged, failed, retried nor given back stays taken as long as its
/// consumer lives, and is then delivered again to the next one. The first of these calls counts.
///
/// A **delivery** hands the entry to a worker. It is an **attempt** unless the worker gave it back
/// unhandled. So a worker that dies with it has made an attempt, and one that is closed has not.
///
/// ```swift
/// let worker = try await container.queue("jobs", of: [String].self).work()
/// for try await entry in worker.entries() {
///   if try entry.content.isEmpty {
///     try entry.fail("the job names no film", isKept: true)
///   } else if printerIsBusy() {
///     try entry.retry(after: .seconds(10), because: "the printer is busy")
///   } else {
///     try entry.acknowledge()
///   }
/// }
/// func printerIsBusy() -> Bool { false }
/// ```
public final class QueueEntry<Content: Codable & Sendable>: Sendable {
  /// The content that was sent as a property list, whatever its type is.
  public let payload: PropertyListValue
  /// The key by which a newer entry would have superseded this one.
  public let key: String?
  /// The number of this attempt: 1 for the first. Attempts of consumers that died count.
  public let attempt: Int
  /// Whether it was delivered before, and perhaps handled.
  public let isRedelivery: Bool
  /// The id by which its sender knows it.
  public let id: QueueEntryID
  package let batch: TakenBatch
  private let isReleased = Atomic(false)
  /// Whether it is known to have a mark.
  let isMarked = Atomic(false)

  init(_ delivery: Delivery) {
    payload = delivery.payload
    key = delivery.key
    attempt = delivery.attempt
    isRedelivery = delivery.isRedelivery
    batch = delivery.batch
    id = QueueEntryID(batch: batch.name, index: delivery.index)
  }

  /// The content that was sent. Throws `DecodingError` for content of another shape, which ends no
  /// loop over entries.
  public var content: Content { get throws { try payload.decode() } }

  /// The name of its sender.
  public var sender: String { id.sender }

  /// The time of sending, by its sender's clock, which never goes back.
  public var sent: Date { id.sent }

  /// Ends the entry: it is processed, and never delivered again. Further calls have no effect.
  ///
  /// - Throws: `WormholeError.Code.leaseLost` if this consumer was replaced while it was stopped;
  ///   the entry is then delivered to its successor, which is the error's `holder` if it is known,
  ///   and this consumer continues with the next entry. A consumer that was stopped and replaced
  ///   within this very call may get no error. Otherwise errors of the file system.
  /// - Complexity: one unlink; for an entry that was stored together with others, an open, a write
  ///   and a close until the last of them.
  public func acknowledge() throws { try end(as: .processed) }

  /// Ends the entry as failed: it is not delivered again, and its sender learns the reason.
  ///
  /// - Parameters:
  ///   - reason: shown to the sender.
  ///   - isKept: whether it is kept, with its file: `Queue.failures()` lists it, and `retry` sends
  ///     it again.
  /// - Throws: as `acknowledge()`.
  /// - Complexity: as `acknowledge()`, and a file for the reason; keeping it takes another file.
  public func fail(_ reason: String, isKept: Bool = false) throws {
    try end(as: .failed(reason: reason), isKept: isKept)
  }

  /// Ends a failed attempt: after a pause the entry is delivered again, to this consumer or the next
  /// one, even across a restart of the machine.
  ///
  /// It waits alone: later entries of its sender are delivered in the meantime. Once it is due it
  /// precedes waiting entries, but two returned entries are never delivered one after the other as
  /// long as anything else waits: so no returned entry stops its queue, whatever its pause.
  ///
  /// If this was the last of the consumer's `attempts`, the entry ends as failed with this reason,
  /// and is kept.
  ///
  /// - Parameters:
  ///   - pause: the shortest time until its next delivery; zero or less means as soon as possible.
  ///   - reason: why the attempt failed; recorded, up to 1,000 bytes.
  /// - Throws: as `acknowledge()`. Then the entry must still be ended or given back.
  /// - Complexity: an open, a write and a close.
  public func retry(after pause: Duration, because reason: String) throws {
    try leaving { try batch.retry(id.index, after: pause, because: reason) }
  }

  /// Gives the entry back unhandled: this delivery is not an attempt, and the entry is delivered
  /// again at once, to this consumer or another. Closing a consumer does this with all its entries.
  ///
  /// - Throws: as `retry`.
  /// - Complexity: an open, a write and a close.
  public func giveBack() throws {
    try leaving { try batch.giveBack(id.index) }
  }

  /// Ends this delivery, but not the entry.
  private func leaving(_ body: () throws -> Void) throws {
    // Of two threads, only one gives it back.
    guard !isReleased.exchange(true, ordering: .sequentiallyConsistent) else { return }
    do {
      try body()
    } catch {
      isReleased.store(false, ordering: .sequentiallyConsistent)
      throw error
    }
  }

  private func end(as status: QueueEntryStatus, isKept: Bool = false) throws {
    // The entry no longer belongs to this delivery.
    guard !isReleased.load(ordering: .sequentiallyConsistent) else { return }
    try batch.settle(id.index, as: status, isKept: isKept, isFinal: batch.isFinal)
    removeMark()
  }

  /// Ends the entry as cancelled: its sender gave it up while the consumer was handling it.
  ///
  /// - Throws: as `acknowledge()`.
  package func cancel() throws { try end(as: .cancelled) }
}

/// A consumer's progress with an entry that it handles in several steps, for the consumer to which
/// the entry is delivered again. A replaced consumer neither records nor removes a note that its
/// successor finds.
extension QueueEntry {
  /// Records progress; there must be no note yet.
  ///
  /// - Parameter text: one line, for the consumer to which the entry is delivered again.
  /// - Throws: `WormholeError`: `leaseLost` if this consumer was replaced; or errors of the file
  ///   system. Nothing is recorded then, unless the last fsync failed.
  /// - Complexity: create, lock, write, rename; with `.durable` two fsyncs.
  package func mark(_ text: String, durability: Durability = .standard) throws {
    isMarked.store(true, ordering: .sequentiallyConsistent)
    try marking { try $0.mark(id.index, text, durability: durability) }
  }

  /// Removes the note, if there is one. This needs no space on the disk.
  ///
  /// - Throws: `WormholeError`: as `mark`.
  package func unmark() throws { try marking { try $0.mark(id.index, nil, durability: .standard) } }

  /// Returns the note of this consumer or an earlier one; nil if there is none.
  ///
  /// - Throws: `WormholeError`: as `mark`.
  package func marked() throws -> String? {
    let text = try marking { try $0.marked(id.index) }
    if text != nil { isMarked.store(true, ordering: .sequentiallyConsistent) }
    return text
  }

  /// Removes the note of an entry that has ended.
  func removeMark() {
    guard isMarked.load(ordering: .sequentiallyConsistent) else { return }
    // Its end is final, and the next consumer sweeps notes without a batch.
    try? unmark()
  }

  private func marking<Result>(_ body: (any TakenBatchStorage) throws -> Result) throws -> Result {
    try batch.queue.attempt("note the progress of an entry of") {
      try batch.noticingLoss { try body(batch.store) }
    }
  }
}

/// A batch that this consumer has taken: its entries are settled one by one, and the file is
/// removed with the last of them.
package final class TakenBatch: Sendable {
  package let name: EntryFile
  package let entries: [Batch.Entry]
  /// The consumer's directory in `taken/`, which has the files that accompany its entries.
  package let consumer: String
  package let store: any TakenBatchStorage
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
    /// The entries that were delivered, and are neither settled nor given back.
    var inHand: Set<Int> = []
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
      if isSettled { inHand.remove(index) }
      return remaining == 0
    }
  }

  package init(
    _ name: EntryFile, _ batch: Batch, settled: Set<Int>, log: DeliveryLog,
    by consumer: String, in store: any TakenBatchStorage, terms: DeliveryTerms
  ) {
    self.name = name
    self.consumer = consumer
    self.terms = terms
    entries = batch.entries
    self.store = store
    let open = Set(name.indices).subtracting(settled)
    let stages = batch.entries.indices.map { open.contains($0) ? Stage.unsettled : .settled }
    state = Mutex(State(stages: stages, log: log))
    terms.begin(self)
  }

  package var queue: PlainQueue { terms.queue }
  /// Whether its consumer takes no more entries after it.
  var isFinal: Bool { terms.isFinal.load(ordering: .relaxed) }

  /// Opens the queue's directory; see `OpenQueue`.
  package func open() throws -> QueueDirectory { try terms.directory.openForConsumer() }

  /// Verifies that no other consumer can have the batch.
  package func confirm() throws {
    try noticingLoss { try store.confirm(looks: true, until: nil) }
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
  /// - Returns: the number of this attempt, and of all deliveries including this one; nil if the
  ///   limit is exceeded: the entry has then failed, and is kept.
  /// - Throws: `leaseLost` if this consumer was replaced.
  func deliver(
    _ index: Int, until deadline: ContinuousClock.Instant?
  ) throws -> (attempt: Int, deliveries: Int)? {
    let (before, attempts) = state.withLock {
      ($0.log.deliveries(of: index), $0.log.attempts(of: index))
    }
    guard attempts < terms.consumer.attempts ?? .max else {
      let last = state.withLock { $0.log.reason(index) }
      let reason =
        (attempts == 1 ? "its only attempt" : "each of \(attempts) attempts")
        + " ended without a result" + (last.map { "; the last known reason: \($0)" } ?? "")
      try settle(index, as: .failed(reason: reason), isKept: true, until: deadline)
      return nil
    }
    // Taking a batch of one counts as its first delivery.
    if before > 0 || name.count > 1 { try log(DeliveryLog.line(index), until: deadline) }
    state.withLock {
      $0.log.noteDelivery(of: index)
      $0.inHand.insert(index)
    }
    try store.confirm(looks: false, until: deadline)
    return (attempts + 1, before + 1)
  }

  /// Ends a failed attempt: the entry is delivered again after a pause, or ends as failed after the
  /// last attempt.
  ///
  /// - Throws: `leaseLost` if this consumer was replaced; its successor then has the entry.
  func retry(_ index: Int, after pause: Duration, because reason: String) throws {
    let count = state.withLock { $0.log.attempts(of: index) }
    guard count < terms.consumer.attempts ?? .max else {
      return try settle(index, as: .failed(reason: reason), isKept: true)
    }
    try giveBack(index, DeliveryLog.line(index, pause: pause, reason: reason), after: pause) { _ in
    }
  }

  /// Gives back an entry that was not attempted.
  ///
  /// - Throws: as `retry`.
  func giveBack(_ index: Int) throws {
    try giveBack(index, DeliveryLog.givenBackLine(index), after: .zero) { $0.noteGivenBack(index) }
  }

  private func giveBack(
    _ index: Int, _ line: String, after pause: Duration, note: (inout DeliveryLog) -> Void
  ) throws {
    guard !isSettled(index) else { return }
    try log(line, until: nil)
    state.withLock { state in
      state.inHand.remove(index)
      note(&state.log)
    }
    terms.add(.init(batch: self, index: index, due: .now + pause))
    terms.wake.raise()
  }

  /// Notes for the next consumer that what this one has was not attempted.
  func close() {
    let unattempted = state.withLock { state in
      // Taking a batch of one counts as its first delivery.
      let alone = name.count == 1 ? name.indices : 0..<0
      let undelivered = alone.filter { state.log.deliveries(of: $0) == 0 }
      defer { state.inHand = [] }
      return state.inHand.union(undelivered).filter { state.stages[$0] == .unsettled }
    }
    guard !unattempted.isEmpty else { return }
    let lines = unattempted.sorted().map { DeliveryLog.givenBackLine($0) }.joined()
    // Without the note, or if this consumer was replaced, the deliveries count as attempts.
    _ = try? store.log(lines, until: .now + Self.closingTime)
  }

  static let closingTime: Duration = .seconds(1)

  /// Ends as failed the entries that have not ended, and counts them.
  func fail(_ reason: String, _ isMeant: (QueueEntryID) -> Bool) throws -> Int {
    let meant = entries.indices.filter {
      !isSettled($0) && entries[$0].payload != nil && isMeant(.init(batch: name, index: $0))
    }
    for index in meant { try settle(index, as: .failed(reason: reason)) }
    return meant.count
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
  /// - Parameters:
  ///   - isKept: whether it is kept for inspection, and possibly sent again.
  ///   - isFinal: whether its consumer may leave with it.
  /// - Throws: `leaseLost` if this consumer was replaced; its successor then has the entry.
  func settle(
    _ index: Int, as status: QueueEntryStatus = .processed, isKept: Bool = false,
    isFinal: Bool = false, until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try queue.attempt("settle an entry of") {
      guard let begun = state.withLock({ $0.begin(index) }) else { return }
      let settlement = Settlement(
        id: QueueEntryID(batch: name, index: index), entry: entries[index], status: status,
        isKept: isKept, isLast: begun.isLast, isFinal: isFinal,
        hasNotes: name.count > 1 || begun.hasNotes)
      do {
        try noticingLoss { try store.settle(settlement, until: deadline) }
        // If two threads settle the last two entries, neither finds its entry to be the last: the
        // thread that finishes last ends the batch.
        let isOver = state.withLock { $0.end(index, isSettled: true) }
        if isOver { terms.end(self) }
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
