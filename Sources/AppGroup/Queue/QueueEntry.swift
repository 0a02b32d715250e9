public import FoundationEssentials
public import PropertyLists
import Synchronization

/// An entry that a consumer has taken, to be acknowledged when it is handled.
///
/// One that is neither acknowledged, failed nor released stays taken as long as its consumer lives, and
/// is delivered again to the next one. The first of these counts.
public final class QueueEntry: Sendable {
  /// What was sent.
  public let payload: PropertyListValue
  /// The key by which a newer one would have taken its place.
  public let key: String?
  /// How often it was delivered, this time included: also to consumers that ended before they had
  /// handled it.
  public let deliveries: Int
  /// The id that its sender knows it by.
  public let id: QueueEntryID
  let batch: TakenBatch
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

  /// When it was sent, by its sender's clock, which never goes back.
  public var sent: Date { Date(timeIntervalSince1970: Double(id.batch.order) / 1e9) }

  /// Ends the entry: it is processed, and never delivered again. Once is enough.
  ///
  /// - Throws: `AppGroupError`: `leaseLost` when this consumer was replaced while it was stopped; the
  ///   entry is delivered to the other then. Otherwise what the file system refuses.
  /// - Complexity: one unlink; for an entry that was stored together with others, an open, a write
  ///   and a close until the last of them.
  public func acknowledge() throws { try end(as: .processed) }

  /// Ends the entry as failed: it is not delivered again, and its sender learns why.
  ///
  /// - Parameters:
  ///   - reason: for the sender.
  ///   - isKept: whether it is kept, with its file: `Queue.failures()` lists it, `retry` sends it again.
  /// - Throws: as `acknowledge()`.
  /// - Complexity: as `acknowledge()`, and a file for the reason; keeping it takes another one.
  public func fail(_ reason: String, isKept: Bool = false) throws {
    try end(as: .failed(reason: reason), isKept: isKept)
  }

  /// Gives the entry back: it is delivered again when a pause is over, to this consumer or the next one,
  /// also after a restart of the machine.
  ///
  /// It waits alone: what its sender has sent after it is delivered meanwhile. When its time has come it
  /// goes before what waits, but two of those that were given back never come one after the other as
  /// long as anything else waits: so none stops its queue, whatever its pause.
  ///
  /// Where the consumer was given `maximumDeliveries`, and it was delivered that often, it ends as failed,
  /// and is kept.
  ///
  /// - Parameter pause: at least so long it is not delivered; zero or less for the next possible moment.
  /// - Throws: as `acknowledge()`. It is still to be ended or released then.
  /// - Complexity: an open, a write and a close.
  public func release(after pause: Duration) throws {
    guard !isReleased.load(ordering: .sequentiallyConsistent) else { return }
    try batch.release(id.index, after: pause)
    isReleased.store(true, ordering: .sequentiallyConsistent)
  }

  private func end(as status: QueueEntryStatus, isKept: Bool = false) throws {
    // It is not this delivery's any more.
    guard !isReleased.load(ordering: .sequentiallyConsistent) else { return }
    try batch.settle(id.index, as: status, isKept: isKept)
    removeMark()
  }

  /// Ends the entry as cancelled: its sender has given it up while the consumer was handling it.
  ///
  /// - Throws: as `acknowledge()`.
  package func cancel() throws { try end(as: .cancelled) }
}
