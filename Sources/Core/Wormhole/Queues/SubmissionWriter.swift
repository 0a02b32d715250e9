import Dispatch
import Synchronization
import WormholePropertyLists
import WormholeSystem

/// The sends of a sender, whatever the type of their content is: while one is written, others gather, and
/// go out together as the next file.
final class SubmissionWriter: Sendable {
  private let queue: PlainQueue
  private let writer: any BatchWriter
  private let gathering = Mutex(Gathering())

  private struct Gathering {
    var waiting: [Submission] = []
    /// Whether a thread is writing; it looks for further sends before it stops.
    var isWriting = false
  }

  /// The largest total size of entries that go out together, unless one alone is larger.
  private static let gatheredBytes = 256 << 10

  init(_ queue: PlainQueue, for sender: String, _ limits: QueueLimits) {
    self.queue = queue
    writer = queue.store.outlet(for: sender, limits)
  }

  /// For tests: how many sends have gathered while another is being written.
  var gathered: Int { gathering.withLock { $0.waiting.count } }

  /// Stores an entry, on this thread or with those of others.
  func submit(
    _ entry: Batch.Entry, _ durability: Durability, _ place: Submission.Schedule,
    _ role: RoleProof?
  ) throws -> QueueEntryID {
    // It need not gather if no thread is writing.
    let mayWriteNow = gathering.withLock { !exchange(&$0.isWriting, with: true) }
    return try mayWriteNow
      ? writeNow(entry, durability, place, role) : writeWithOthers(entry, durability, place, role)
  }

  /// Stores an entry on another thread.
  func submitLater(_ submission: Submission) {
    if gather(submission) { writeLater() }
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

  /// - Returns: whether the caller has to write.
  private func gather(_ submission: Submission) -> Bool {
    gathering.withLock { gathering in
      gathering.waiting.append(submission)
      return !exchange(&gathering.isWriting, with: true)
    }
  }

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
    for part in writer.parts(of: submissions) { writeTogether(part) }
  }

  private func writeTogether(_ submissions: [Submission]) {
    guard submissions.count > 1 else { return writeEach(submissions) }
    do {
      let bytes = try Batch(submissions.map(\.entry)).bytes()
      guard try writer.refusal(of: submissions.count, bytes.count) == nil else {
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
      if let limit = try writer.refusal(of: 1, bytes.count) { throw full(limit) }
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
      try writer.store(bytes, entries, position: place, isDurable: isDurable, under: role)
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
