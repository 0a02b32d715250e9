public import FoundationEssentials
public import PropertyLists
import Synchronization

/// An entry that a consumer has taken, to be acknowledged when it is handled.
///
/// One that is neither acknowledged nor failed stays taken as long as its consumer lives, and is
/// delivered again to the next one.
public final class QueueEntry: Sendable {
  /// What was sent.
  public let payload: PropertyListValue
  /// The key by which a newer one would have taken its place.
  public let key: String?
  /// Whether a consumer had taken it before, and perhaps handled it.
  public let isRedelivery: Bool
  /// The id that its sender knows it by.
  public let id: QueueEntryID
  let batch: TakenBatch
  /// Whether it is known to have a mark.
  let isMarked = Atomic(false)

  init(payload: PropertyListValue, key: String?, _ batch: TakenBatch, _ index: Int) {
    self.payload = payload
    self.key = key
    self.batch = batch
    isRedelivery = batch.isRedelivery
    id = QueueEntryID(batch: batch.name, index: index)
  }

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
  /// - Parameter reason: for the sender.
  /// - Throws: as `acknowledge()`.
  public func fail(_ reason: String) throws {
    try end(as: .failed(reason: reason))
  }

  /// Ends the entry as cancelled: its sender has given it up while the consumer was handling it.
  ///
  /// - Throws: as `acknowledge()`.
  package func cancel() throws { try end(as: .cancelled) }

  private func end(as status: QueueEntryStatus) throws {
    try batch.settle(id.index, as: status)
    removeMark()
  }
}
