import Dispatch
import Synchronization
public import WormholePropertyLists
import WormholeSystem

extension Queue {
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
  public final class Sender: Sendable {
    /// The queue.
    public let queue: Queue
    /// The sender's name.
    public let name: String

    /// The encoded name.
    let component: String
    private let outlet: any QueueOutlet
    private let gathering = Mutex(Gathering())
    /// Notifies callers that wait for the end of entries.
    let ends: any QueueEnds
    let store: any QueueStore

    private struct Gathering {
      var waiting: [Submission] = []
      /// Whether a thread is writing; it looks for further sends before it stops.
      var isWriting = false
    }

    /// The largest total size of entries that go out together, unless one alone is larger.
    private static let gatheredBytes = 256 << 10

    init(_ queue: Queue, name: String, component: String, limits: Limits) {
      self.queue = queue
      self.name = name
      self.component = component
      store = queue.store
      ends = store.endWatch()
      outlet = store.outlet(for: component, limits)
    }

    /// Stores an entry; it is in the queue when this returns.
    ///
    /// - Parameters:
    ///   - payload: the content for the consumer.
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
    ///   - priority: entries of a higher priority are delivered before it.
    ///   - fence: of a role in the same container; the entry is stored only while no other process
    ///     has entered. In a directory this takes the role's lease. By default, any process may.
    /// - Returns: the id for asking about the entry later.
    /// - Throws: `AppGroupError`: `queueFull`; `unsupportedValue` for a value outside property
    ///   lists, `tooLarge`; `leaseLost` if the fence is broken; or errors of the file system. The
    ///   entry is then not stored, except perhaps after an error of the last fsyncs, or of the
    ///   receipt if a consumer was fast.
    /// - Complexity: create, lock, write, rename and close, shared by all entries that go out
    ///   together. `.durable` adds one fsync on ext4 and xfs (see `CommitScope`); elsewhere two,
    ///   three more if names were new lately, and one for a receipt. A receipt adds a mkdir and a
    ///   link. A key adds a link and a listing, and for each superseded entry the cost of
    ///   `cancel`. A scan of all waiting entries after each sixteenth of the limit, and with a
    ///   sender's first send.
    @available(*, noasync, message: "it blocks; await the other form, in an async function")
    @discardableResult
    public func enqueue(
      _ payload: PropertyListValue, durability: Durability = .standard,
      expires expiry: Duration? = nil, key: String? = nil, keepsReceipt: Bool = false,
      receiptTerm: QueueReceipt.Term = .untilForgotten, delay: Duration? = nil,
      priority: EntryPriority = .standard, while fence: Presence.Fence? = nil
    ) throws -> QueueEntryID {
      let outcome = Awaited<Result<QueueEntryID, any Error>>()
      let entry = Batch.Entry(
        payload: payload, expiry: expiry.map { Expiry(after: $0) }, key: key,
        keepsReceipt: keepsReceipt, receiptTerm: receiptTerm)
      let submission = Submission(
        entry, durability: durability, place: .init(priority, delay), under: fence?.proof,
        outcome.settle)
      // If no thread is writing, the caller writes, including later sends of others.
      if gather(submission) { write(until: { outcome.isSettled }) }
      let id = try outcome.wait().get()
      if let key { store.supersede(key, before: id) }
      return id
    }

    /// Stores an entry; see the form without `async`. Once begun it is not cancelled.
    @discardableResult
    public func enqueue(
      _ payload: PropertyListValue, durability: Durability = .standard,
      expires expiry: Duration? = nil, key: String? = nil, keepsReceipt: Bool = false,
      receiptTerm: QueueReceipt.Term = .untilForgotten, delay: Duration? = nil,
      priority: EntryPriority = .standard, while fence: Presence.Fence? = nil
    ) async throws -> QueueEntryID {
      let entry = Batch.Entry(
        payload: payload, expiry: expiry.map { Expiry(after: $0) }, key: key,
        keepsReceipt: keepsReceipt, receiptTerm: receiptTerm)
      let id = try await store(
        entry, durability, place: .init(priority, delay), under: fence?.proof)
      if let key { try await Blocking.run { self.store.supersede(key, before: id) } }
      return id
    }

    private func store(
      _ entry: Batch.Entry, _ durability: Durability, place: Submission.Place,
      under role: RoleProof?
    ) async throws -> QueueEntryID {
      try await withCheckedThrowingContinuation { continuation in
        let submission = Submission(entry, durability: durability, place: place, under: role) {
          continuation.resume(with: $0)
        }
        if gather(submission) { Blocking.queue().async { self.write(until: { false }) } }
      }
    }

    /// - Returns: whether the caller has to write.
    private func gather(_ submission: Submission) -> Bool {
      gathering.withLock { gathering in
        gathering.waiting.append(submission)
        defer { gathering.isWriting = true }
        return !gathering.isWriting
      }
    }

    /// For tests: how many sends have gathered while another is being written.
    var gathered: Int { gathering.withLock { $0.waiting.count } }

    // One at a time, so the order of the stamps is the order of the files.
    private func write(until isDone: () -> Bool) {
      while true {
        let next = gathering.withLock { gathering -> [Submission]? in
          guard !gathering.waiting.isEmpty else {
            // Excludes: a send that finds a writer that has just seen that nothing waits.
            gathering.isWriting = false
            return []
          }
          return isDone() ? nil : Self.gather(&gathering.waiting)
        }
        // This caller must not wait for the sends of others.
        guard let next else { return Blocking.queue().async { self.write(until: { false }) } }
        guard !next.isEmpty else { return }
        outlet.write(next)
      }
    }

    private static func gather(_ waiting: inout [Submission]) -> [Submission] {
      var count = 0
      var bytes = 0
      for submission in waiting.prefix(EntryFile.maximumCount) {
        bytes += submission.footprint.fileBytes
        // A file has one place in the queue; a delayed entry, or one under a role, is alone in it.
        let isBeside =
          submission.place == waiting[0].place && submission.place.delay == nil
          && submission.role == nil && waiting[0].role == nil
        guard count == 0 || bytes <= gatheredBytes && isBeside else { break }
        count += 1
      }
      let next = Array(waiting.prefix(count))
      waiting.removeFirst(count)
      return next
    }
  }
}
