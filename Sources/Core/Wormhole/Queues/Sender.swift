import WormholePropertyLists
import WormholeSystem

/// A sender to a queue under a name.
///
/// While one write is under way, further sends gather and go out together as the next file, so
/// that they share its cost; a lone send goes out at once. Thread-safe.
///
/// ```swift
/// let sender = try container.queue("jobs").sender("box office")
/// let id = try await sender.enqueue(["film": "Metropolis"], keepsReceipt: true)
/// print(try await sender.finalStatus(of: id, until: .now + .seconds(5)))
/// try sender.forget(id)
/// ```
public final class QueueSender<Content: Codable & Sendable>: Sendable {
  /// The queue.
  public let queue: Queue<Content>
  /// The sender's name.
  public let name: String

  /// The encoded name.
  let component: String
  let submissions: SubmissionWriter
  /// Notifies callers that wait for the end of entries.
  let ends: QueueEnds
  let store: any QueueStore

  init(_ queue: Queue<Content>, name: String, component: String, limits: QueueLimits) {
    self.queue = queue
    self.name = name
    self.component = component
    store = queue.store
    ends = QueueEnds(store)
    submissions = SubmissionWriter(queue.plain, for: component, limits)
  }

  /// Stores an entry; it is in the queue when this returns.
  ///
  /// - Parameters:
  ///   - content: any value that a property list can hold.
  ///   - durability: with `.durable` the entry survives a loss of power from then on.
  ///   - expiry: the time after which it is no longer delivered; by default never.
  ///   - key: older entries of this sender with the same key that no consumer has taken are not
  ///     delivered. If the file system cannot withdraw them, they may be delivered, in their
  ///     order; the new entry is stored anyway.
  ///   - keepsReceipt: whether `receipts()` lists it, with its payload and its outcome, even
  ///     after a restart, until the sender clears it.
  ///   - receiptTerm: whether the receipt is removed automatically after the entry was processed.
  ///   - delay: how long it is not taken, even across restarts; until then it can be cancelled
  ///     and superseded. It is due by the system's clock, or after the delay if that is set back.
  ///     By default, and for zero or less, it is not delayed. `expires` counts from the send.
  ///   - fence: of a role in the same container; the entry is stored only while no other process
  ///     has entered. In a directory this takes the role's lease. By default, any process may.
  /// - Returns: the id for asking about the entry later.
  /// - Throws: the error of encoding; `WormholeError.Code.queueFull`; `.unsupportedValue` for a value
  ///   outside property lists, `.tooLarge`; `.leaseLost` if the fence is broken; or errors of the file
  ///   system. The entry is then not stored, except perhaps after an error of the last fsyncs, or of
  ///   the receipt if a consumer was fast.
  /// - Complexity: create, lock, write, rename and close, shared by all entries that go out
  ///   together. `.durable` adds one fsync on ext4 and xfs (see `CommitScope`); elsewhere two,
  ///   three more if names were created recently, and one for a receipt. A receipt adds a mkdir
  ///   and a link. A key adds a link and a listing, and for each superseded entry the cost of
  ///   `cancel`. A scan of all waiting entries after each sixteenth of the limit, and with a
  ///   sender's first send.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func enqueue(
    _ content: Content, durability: Durability = .standard,
    expires expiry: Duration? = nil, key: String? = nil, keepsReceipt: Bool = false,
    receiptTerm: QueueReceipt.Term = .untilForgotten, delay: Duration? = nil,
    while fence: Fence? = nil
  ) throws -> QueueEntryID {
    let entry = try Batch.Entry(
      payload: PropertyListValue(encoding: content), expiry: expiry.map { Expiry(after: $0) },
      key: key,
      keepsReceipt: keepsReceipt, receiptTerm: receiptTerm)
    let id = try submissions.submit(entry, durability, .init(delay), fence?.proof)
    if let key { store.supersede(key, before: id) }
    return id
  }

  /// Stores an entry; see the form without `async`. Once begun it is not cancelled.
  @discardableResult
  public func enqueue(
    _ content: Content, durability: Durability = .standard,
    expires expiry: Duration? = nil, key: String? = nil, keepsReceipt: Bool = false,
    receiptTerm: QueueReceipt.Term = .untilForgotten, delay: Duration? = nil,
    while fence: Fence? = nil
  ) async throws -> QueueEntryID {
    let entry = try Batch.Entry(
      payload: PropertyListValue(encoding: content), expiry: expiry.map { Expiry(after: $0) },
      key: key, keepsReceipt: keepsReceipt, receiptTerm: receiptTerm)
    let id = try await withCheckedThrowingContinuation { continuation in
      submissions.submitLater(
        Submission(entry, durability: durability, place: .init(delay), under: fence?.proof) {
          continuation.resume(with: $0)
        })
    }
    if let key { try await Blocking.run { self.store.supersede(key, before: id) } }
    return id
  }
}
