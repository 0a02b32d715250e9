import Dispatch
public import PropertyLists
import Synchronization
import SystemCalls

extension Queue {
  /// Who sends to a queue under a name.
  ///
  /// While one write is under way, further sends gather and go out together as the next file, so
  /// that they share its cost; a lone send goes out at once. Thread-safe.
  public final class Sender: Sendable {
    /// The queue.
    public let queue: Queue
    /// The sender's name.
    public let name: String

    /// The name, encoded.
    let component: String
    private let outlet: BatchOutlet
    private let gathering = Mutex(Gathering())
    /// Tells whoever waits for the end of entries.
    let ends: QueueEndWatch

    private struct Gathering {
      var waiting: [Submission] = []
      /// Somebody writes, and will look for what waits before it stops.
      var isWriting = false
    }

    /// Entries that go out together have so many bytes at most, unless one alone has more.
    private static let gatheredBytes = 256 << 10

    init(_ queue: Queue, name: String, component: String, limits: Limits) {
      self.queue = queue
      self.name = name
      self.component = component
      ends = QueueEndWatch(queue.place)
      outlet = BatchOutlet(queue, component, limits)
    }

    /// Stores an entry; it is in the queue when this returns.
    ///
    /// - Parameters:
    ///   - payload: what the consumer gets.
    ///   - durability: with `.durable` the entry survives the loss of power from then on.
    ///   - expiry: after how long it is not to be delivered any more; by default never.
    ///   - key: older entries of this sender with the same key that no consumer has taken are not
    ///     delivered any more. Where the file system refuses that they may be, in their order; the
    ///     new one is stored all the same.
    ///   - keepsReceipt: whether `receipts()` lists it, with its payload and how it ended, also after
    ///     a restart, until the sender forgets it.
    ///   - receiptTerm: whether the receipt goes by itself when the entry was processed.
    /// - Returns: by what to ask for it later.
    /// - Throws: `AppGroupError`: `queueFull`; `unsupportedValue` for what is no property list,
    ///   `tooLarge`; or what the file system refuses. The entry is not stored then; only after an
    ///   error of the last fsyncs, or of the receipt when a consumer was quick, it may be.
    /// - Complexity: create, lock, write, rename and a few cheap calls, shared by all that go out
    ///   together; `.durable` adds two fsyncs, and three more where names were new lately. A receipt
    ///   adds a mkdir and a link, and with `.durable` one fsync. A key adds a link and a listing, and
    ///   for what is superseded the cost of `cancel`. A look at all that waits after each sixteenth
    ///   of the limit, and when the sender sends for the first time.
    @available(*, noasync, message: "it blocks; await the other form, in an async function")
    @discardableResult
    public func send(
      _ payload: PropertyListValue, durability: Durability = .standard,
      expires expiry: Duration? = nil, key: String? = nil, keepsReceipt: Bool = false,
      receiptTerm: QueueReceipt.Term = .untilForgotten
    ) throws -> QueueEntryID {
      let outcome = Outcome()
      let entry = Batch.Entry(
        payload: payload, expiry: expiry.map { Expiry(after: $0) }, key: key,
        keepsReceipt: keepsReceipt, receiptTerm: receiptTerm)
      let submission = Submission(entry, durability, outcome.settle)
      // Whoever finds nobody writing writes itself, also what others add meanwhile.
      if enqueue(submission) { write(until: { outcome.isSettled }) }
      let id = try outcome.wait()
      if let key { supersede(key, before: id) }
      return id
    }

    /// Stores an entry; see the form without `async`. What has begun is not cancelled.
    @discardableResult
    public func send(
      _ payload: PropertyListValue, durability: Durability = .standard,
      expires expiry: Duration? = nil, key: String? = nil, keepsReceipt: Bool = false,
      receiptTerm: QueueReceipt.Term = .untilForgotten
    ) async throws -> QueueEntryID {
      let entry = Batch.Entry(
        payload: payload, expiry: expiry.map { Expiry(after: $0) }, key: key,
        keepsReceipt: keepsReceipt, receiptTerm: receiptTerm)
      let id = try await store(entry, durability)
      if let key { try await Blocking.run { self.supersede(key, before: id) } }
      return id
    }

    private func store(
      _ entry: Batch.Entry, _ durability: Durability
    ) async throws -> QueueEntryID {
      try await withCheckedThrowingContinuation { continuation in
        let submission = Submission(entry, durability) { continuation.resume(with: $0) }
        if enqueue(submission) { Blocking.queue().async { self.write(until: { false }) } }
      }
    }

    /// Stores a file that lies elsewhere in the queue, a batch of one; see `BatchOutlet.adopt`.
    func adopt(_ path: String) throws -> QueueEntryID? { try outlet.adopt(path) }

    /// - Returns: whether the caller has to write.
    private func enqueue(_ submission: Submission) -> Bool {
      gathering.withLock { gathering in
        gathering.waiting.append(submission)
        defer { gathering.isWriting = true }
        return !gathering.isWriting
      }
    }

    /// For tests: how many sends have gathered while another is written.
    var gathered: Int { gathering.withLock { $0.waiting.count } }

    // One at a time; so the order of the stamps is the order of the files.
    private func write(until isDone: () -> Bool) {
      while true {
        let next = gathering.withLock { gathering -> [Submission]? in
          guard !gathering.waiting.isEmpty else {
            // Excludes: a send that finds somebody writing who has just seen that nothing waits.
            gathering.isWriting = false
            return []
          }
          return isDone() ? nil : Self.gather(&gathering.waiting)
        }
        // Others' sends are not for this caller to wait for.
        guard let next else { return Blocking.queue().async { self.write(until: { false }) } }
        guard !next.isEmpty else { return }
        outlet.write(next)
      }
    }

    private static func gather(_ waiting: inout [Submission]) -> [Submission] {
      var count = 0
      var bytes = 0
      for submission in waiting.prefix(BatchName.maximumCount) {
        bytes += submission.footprint.fileBytes
        guard count == 0 || bytes <= gatheredBytes else { break }
        count += 1
      }
      let next = Array(waiting.prefix(count))
      waiting.removeFirst(count)
      return next
    }
  }
}

/// One send on its way.
struct Submission: Sendable {
  let entry: Batch.Entry
  /// What it adds to the file that it goes out in.
  let footprint: PropertyListFootprint
  let durability: Durability
  let settle: @Sendable (Result<QueueEntryID, any Error>) -> Void

  init(
    _ entry: Batch.Entry, _ durability: Durability,
    _ settle: @escaping @Sendable (Result<QueueEntryID, any Error>) -> Void
  ) {
    self.entry = entry
    footprint = entry.footprint
    self.durability = durability
    self.settle = settle
  }
}

/// What a blocked sender waits for.
private final class Outcome: Sendable {
  private let result = Mutex<Result<QueueEntryID, any Error>?>(nil)
  private let semaphore = DispatchSemaphore(value: 0)

  var isSettled: Bool { result.withLock { $0 != nil } }

  func settle(_ outcome: Result<QueueEntryID, any Error>) {
    result.withLock { $0 = outcome }
    semaphore.signal()
  }

  func wait() throws -> QueueEntryID {
    semaphore.wait()
    guard let outcome = result.withLock({ $0 }) else {
      preconditionFailure("a sender is woken when its outcome is there")
    }
    return try outcome.get()
  }
}
