public import FoundationEssentials
import Synchronization
public import WormholePropertyLists
import WormholeSystem

/// An entry that a consumer has taken, to be acknowledged when it has been handled.
///
/// An entry that is neither acknowledged, failed nor released stays taken as long as its consumer
/// lives, and is then delivered again to the next one. The first of these calls counts.
///
/// ```swift
/// let worker = try await container.queue("jobs").work()
/// for try await entry in worker.entries() {
///   if entry.payload["film"] == nil {
///     try entry.fail("the job names no film", isKept: true)
///   } else if entry.deliveries < 3, printerIsBusy() {
///     try entry.release(after: .seconds(10))
///   } else {
///     try entry.acknowledge()
///   }
/// }
/// func printerIsBusy() -> Bool { false }
/// ```
public final class QueueEntry: Sendable {
  /// The content that was sent.
  public let payload: PropertyListValue
  /// The key by which a newer entry would have superseded this one.
  public let key: String?
  /// The number of its deliveries, including this one and deliveries to consumers that ended before
  /// they had handled it.
  public let deliveries: Int
  /// The id by which its sender knows it.
  public let id: QueueEntryID
  package let batch: TakenBatch
  private let isReleased = Atomic(false)
  /// Whether it is known to have a mark.
  let isMarked = Atomic(false)

  init(
    payload: PropertyListValue, key: String?, deliveries: Int, _ batch: TakenBatch, _ index: Int
  ) {
    self.payload = payload
    self.key = key
    self.deliveries = deliveries
    self.batch = batch
    id = QueueEntryID(batch: batch.name, index: index)
  }

  /// Whether it was delivered before, and perhaps handled.
  public var isRedelivery: Bool { deliveries > 1 }

  /// The name of its sender.
  public var sender: String { id.sender }

  /// The time of sending, by its sender's clock, which never goes back.
  public var sent: Date { id.sent }

  /// Ends the entry: it is processed, and never delivered again. Further calls have no effect.
  ///
  /// - Throws: `AppGroupError`: `leaseLost` if this consumer was replaced while it was stopped; the
  ///   entry is then delivered to its successor, which is the error's `holder` if it is known, and
  ///   this consumer continues with the next entry. A consumer that was stopped and replaced within
  ///   this very call may get no error. Otherwise errors of the file system.
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

  /// Gives the entry back: after a pause it is delivered again, to this consumer or the next one,
  /// even across a restart of the machine.
  ///
  /// It waits alone: later entries of its sender are delivered in the meantime. Once it is due it
  /// precedes waiting entries, but two returned entries are never delivered one after the other as
  /// long as anything else waits: so no returned entry stops its queue, whatever its pause.
  ///
  /// If the consumer has `maximumDeliveries`, and the entry was delivered that often, it ends as
  /// failed and is kept.
  ///
  /// - Parameter pause: the shortest time until its next delivery; zero or less means as soon as
  ///   possible.
  /// - Throws: as `acknowledge()`. Then the entry must still be ended or released.
  /// - Complexity: an open, a write and a close.
  public func release(after pause: Duration) throws {
    guard !isReleased.load(ordering: .sequentiallyConsistent) else { return }
    try batch.release(id.index, after: pause)
    isReleased.store(true, ordering: .sequentiallyConsistent)
  }

  private func end(as status: QueueEntryStatus, isKept: Bool = false) throws {
    // It no longer belongs to this delivery.
    guard !isReleased.load(ordering: .sequentiallyConsistent) else { return }
    try batch.settle(id.index, as: status, isKept: isKept)
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
  /// - Throws: `AppGroupError`: `leaseLost` if this consumer was replaced; or errors of the file
  ///   system. Nothing is recorded then, unless the last fsync failed.
  /// - Complexity: create, lock, write, rename; with `.durable` two fsyncs.
  package func mark(_ text: String, durability: Durability = .standard) throws {
    isMarked.store(true, ordering: .sequentiallyConsistent)
    try marking { try $0.mark(id.index, text, durability: durability) }
  }

  /// Removes the note, if there is one. This needs no space on the disk.
  ///
  /// - Throws: `AppGroupError`: as `mark`.
  package func unmark() throws { try marking { try $0.unmark(id.index) } }

  /// Returns the note of this consumer or an earlier one; nil if there is none.
  ///
  /// - Throws: `AppGroupError`: as `mark`.
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

  private func marking<Result>(_ body: (any TakenStore) throws -> Result) throws -> Result {
    try batch.queue.attempt("note the progress of an entry of") {
      try batch.noticingLoss { try body(batch.store) }
    }
  }
}
