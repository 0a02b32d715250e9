import Dispatch
import Synchronization
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
  private let outlet: any BatchWriter
  private let gathering = Mutex(Gathering())
  /// Notifies callers that wait for the end of entries.
  let ends: QueueEnds
  let store: any QueueStore

  private struct Gathering {
    var waiting: [Submission] = []
    /// Whether a thread is writing; it looks for further sends before it stops.
    var isWriting = false
  }

  /// The largest total size of entries that go out together, unless one alone is larger.
  private static var gatheredBytes: Int { 256 << 10 }

  init(_ queue: Queue<Content>, name: String, component: String, limits: QueueLimits) {
    self.queue = queue
    self.name = name
    self.component = component
    store = queue.store
    ends = QueueEnds(store)
    outlet = store.outlet(for: component, limits)
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
    let place = Submission.Schedule(delay)
    // It need not gather if no thread is writing.
    let mayWriteNow = gathering.withLock { !exchange(&$0.isWriting, with: true) }
    let id =
      try mayWriteNow
      ? writeNow(entry, durability, place, fence?.proof)
      : writeWithOthers(entry, durability, place, fence?.proof)
    if let key { store.supersede(key, before: id) }
    return id
  }

  /// Stores an entry while no other is being written; another thread writes what gathers meanwhile.
  private func writeNow(
    _ entry: Batch.Entry, _ durability: Durability, _ place: Submission.Schedule,
    _ role: RoleProof?
  ) throws -> QueueEntryID {
    defer { write(until: { true }) }
    return try store(entry, durability, place, role)
  }

  private func writeWithOthers(
    _ entry: Batch.Entry, _ durability: Durability, _ place: Submission.Schedule,
    _ role: RoleProof?
  ) throws -> QueueEntryID {
    let outcome = Awaited<Result<QueueEntryID, any Error>>()
    let submission = Submission(
      entry, durability: durability, place: place, under: role, outcome.settle)
    // If no thread is writing any more, the caller writes, including later sends of others.
    if gather(submission) { write(until: { outcome.isSettled }) }
    return try outcome.wait().get()
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
      let submission = Submission(
        entry, durability: durability, place: .init(delay), under: fence?.proof
      ) { continuation.resume(with: $0) }
      if gather(submission) { writeLater() }
    }
    if let key { try await Blocking.run { self.store.supersede(key, before: id) } }
    return id
  }

  // MARK: Gathering

  /// - Returns: whether the caller has to write.
  private func gather(_ submission: Submission) -> Bool {
    gathering.withLock { gathering in
      gathering.waiting.append(submission)
      return !exchange(&gathering.isWriting, with: true)
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
      guard let next else { return writeLater() }
      guard !next.isEmpty else { return }
      write(next)
    }
  }

  private func writeLater() { Blocking.queue().async { self.write(until: { false }) } }

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

  // MARK: Writing

  /// Stores entries, together if possible, and reports its outcome to each send.
  func write(_ submissions: [Submission]) {
    for part in outlet.parts(of: submissions) { writeTogether(part) }
  }

  private func writeTogether(_ submissions: [Submission]) {
    guard submissions.count > 1 else { return writeEach(submissions) }
    do {
      let bytes = try Batch(submissions.map(\.entry)).bytes()
      guard try outlet.refusal(of: submissions.count, bytes.count) == nil else {
        return writeEach(submissions)
      }
      try store(submissions, bytes)
    } catch is PropertyListError {
      // One of them cannot be stored, or not all together.
      writeEach(submissions)
    } catch {
      for submission in submissions { submission.settle(.failure(error)) }
    }
  }

  // As many as the limits allow: after one refusal the rest are refused without a scan for each.
  private func writeEach(_ submissions: [Submission]) {
    var refusal: WormholeError?
    for submission in submissions {
      if let refusal {
        submission.settle(.failure(refusal))
      } else {
        refusal = writeOne(submission)
      }
    }
  }

  /// - Returns: the error if the queue is full.
  private func writeOne(_ submission: Submission) -> WormholeError? {
    do {
      let id = try store(
        submission.entry, submission.durability, submission.place, submission.role)
      submission.settle(.success(id))
      return nil
    } catch {
      submission.settle(.failure(error))
      let error = error as? WormholeError
      return error?.code == .queueFull ? error : nil
    }
  }

  /// Stores an entry alone.
  private func store(
    _ entry: Batch.Entry, _ durability: Durability, _ place: Submission.Schedule,
    _ role: RoleProof?
  ) throws -> QueueEntryID {
    do {
      let bytes = try Batch([entry]).bytes()
      if let limit = try outlet.refusal(of: 1, bytes.count) { throw full(limit) }
      let name = try store(bytes, [entry], place, isDurable: durability == .durable, role)
      return QueueEntryID(batch: name, index: 0)
    } catch let error as PropertyListError {
      throw WormholeError.unacceptable(
        error, "send to \"\(queue.name)\"", path: queue.path)
    }
  }

  private func store(_ submissions: [Submission], _ bytes: [UInt8]) throws {
    let name = try store(
      bytes, submissions.map(\.entry), submissions[0].place,
      isDurable: submissions.contains { $0.durability == .durable }, submissions[0].role)
    for (index, submission) in submissions.enumerated() {
      submission.settle(.success(QueueEntryID(batch: name, index: index)))
    }
  }

  private func store(
    _ bytes: [UInt8], _ entries: [Batch.Entry], _ place: Submission.Schedule, isDurable: Bool,
    _ role: RoleProof?
  ) throws -> EntryFile {
    try queue.attempt("send to") {
      try outlet.store(bytes, entries, position: place, isDurable: isDurable, under: role)
    }
  }

  private func full(_ limit: Admission) -> WormholeError {
    WormholeError(
      .queueFull, "send to \"\(queue.name)\"", path: queue.path,
      reason: "the limit of \(limit.maximumEntries) entries or \(limit.maximumBytes) bytes is "
        + "reached",
      remedy: "wait until its consumer has caught up")
  }
}

/// A send on its way.
package struct Submission: Sendable {
  package let entry: Batch.Entry
  /// The bytes that it adds to its file.
  let footprint: PropertyListFootprint
  let durability: Durability
  let place: Schedule
  /// The role under which it is stored; nil for any process at any time.
  let role: RoleProof?
  let settle: @Sendable (Result<QueueEntryID, any Error>) -> Void

  package struct Schedule: Hashable {
    /// Nanoseconds; nil for none.
    package let delay: UInt64?

    /// The longest delay: a century.
    private static let longest: Int64 = 3_155_760_000

    package init(_ delay: Duration? = nil) {
      let delay = delay.flatMap { $0 > .zero ? min($0, .seconds(Self.longest)) : nil }
      self.delay = delay.map { max(1, UInt64($0 / .nanoseconds(1))) }
    }
  }

  init(
    _ entry: Batch.Entry, durability: Durability, place: Schedule = .init(),
    under role: RoleProof? = nil,
    _ settle: @escaping @Sendable (Result<QueueEntryID, any Error>) -> Void
  ) {
    self.entry = entry
    footprint = entry.footprint
    self.durability = durability
    self.place = place
    self.role = role
    self.settle = settle
  }
}

/// The writer of a sender's batches, called by one thread at a time: it checks the limits, stamps, and
/// stores.
package protocol BatchWriter: Sendable {
  /// Returns sends in groups that may be stored together.
  func parts(of submissions: [Submission]) -> [[Submission]]

  /// Returns the limit that this many further entries, with this many bytes, would exceed; nil if
  /// they may be stored.
  func refusal(of count: Int, _ size: Int) throws -> Admission?

  /// Stores a batch, under a new name; and removes expired records of the sender, see `RecordExpiry`.
  ///
  /// - Parameter role: The role that is required for storing it.
  func store(
    _ bytes: [UInt8], _ entries: [Batch.Entry], position: Submission.Schedule, isDurable: Bool,
    under role: RoleProof?
  ) throws -> EntryFile
}

extension BatchWriter {
  func parts(of submissions: [Submission]) -> [[Submission]] { [submissions] }
}
