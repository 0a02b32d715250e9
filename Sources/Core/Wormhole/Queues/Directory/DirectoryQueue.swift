import Synchronization
import WormholePropertyLists
import WormholeSystem

/// A queue in its directory; see `QueueDirectory`.
struct DirectoryQueue: QueueStore {
  let queue: PlainQueue

  var path: String { queue.directory.path }

  func outlet(for sender: String, _ limits: QueueLimits) -> any BatchWriter {
    DirectoryBatchWriter(queue, sender, limits: limits)
  }

  func watchEnds(_ ends: QueueEnds) throws -> any Cancelling {
    try QueueEndWatch(queue, ends)
  }

  // MARK: Consumers

  func joining(
    _ terms: DeliveryTerms, until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<QueueMembership> {
    // A worker waits for a consumer that has the queue alone, but does not become one.
    let entry = queue.role.entry(isExclusive: !terms.isWorker) {
      queue.role.place.exclusiveEntry(
        $0, .suspended, until: deadline ?? .now + SharedContainer.standardWait
      ) { try queue.open()?.consumers().isEmpty ?? true }
    }
    return StepwiseWait {
      try entry.step().then { own in
        .done(try begin(as: terms.isWorker ? .worker(own) : .alone(own), terms, until: deadline))
      }
    }
  }

  private func begin(
    as role: ConsumerRole, _ terms: DeliveryTerms, until deadline: ContinuousClock.Instant?
  ) throws -> QueueMembership {
    do {
      let source = try DirectoryConsumer(terms, as: role)
      let place = source.place
      // If it was stopped between the two steps, it may have replaced its own successor, which then
      // begins again. A process without a right to the role must begin again, too, as must a worker
      // beside a consumer that has had the queue alone since.
      if !terms.isWorker {
        try role.registration?.confirm(until: deadline)
      } else if let holder = try queue.role.place.roleHolder() {
        place.end(nil, .closed)
        throw queue.replaced(by: holder.holder)
      }
      return (source, place, role.registration)
    } catch {
      role.registration?.close()
      throw error
    }
  }

  func watchFirstUse(_ signal: @escaping @Sendable () -> Void) throws -> (any Cancelling)? {
    guard try queue.open() == nil else { return nil }
    // Look again after the watch, so that nothing comes between the two.
    let watch = try queue.directory.watch(signal)
    return try queue.open() == nil ? watch : nil
  }

  // MARK: Looking

  func hasEntries() throws -> Bool {
    guard let place = try queue.open() else { return false }
    return try place.search { try place.batches($0)?.isEmpty == false ? true : nil } ?? false
  }

  func status(of id: QueueEntryID) throws -> QueueEntryStatus {
    try queue.open()?.status(of: id) ?? .processed
  }

  func receipt(of id: QueueEntryID) throws -> QueueReceipt? {
    guard let place = try queue.open(), let entry = try place.entry(id) else { return nil }
    return QueueReceipt(id, entry, try place.status(of: id))
  }

  func outcomes(of sender: String) throws -> [QueueOutcome] {
    guard let place = try queue.open() else { return [] }
    let ids = try place.ids(in: QueueDirectory.outcomes).filter { $0.batch.sender == sender }
    // A cancelled entry that has not yet been removed is reported once it is.
    return try ids.compactMap { id in
      let status = try place.status(of: id)
      return status.isEnd && status != .processed ? .init(id: id, status: status) : nil
    }
  }

  func receipts(of sender: String) throws -> [QueueReceipt] {
    guard let place = try queue.open() else { return [] }
    let batches = try place.batches(QueueDirectory.sent) ?? []
    return try batches.filter { $0.sender == sender }.ordered(by: <).flatMap {
      try place.receipts($0)
    }
  }

  func unfinished(of sender: String?, limit: Int) throws -> [QueueReceipt] {
    try queue.open()?.unfinished(of: sender, limit: limit) ?? []
  }

  func abandoned() throws -> Set<EntryFile> {
    guard let place = try queue.open() else { return [] }
    var consumers = OtherConsumers(of: queue)
    let findings = try consumers.look(at: Array(place.consumers()))
    return try findings.abandoned.reduce(into: []) {
      $0.formUnion(try place.batches(QueueDirectory.takenPath($1)) ?? [])
    }
  }

  // MARK: Forgetting

  func forget(_ id: QueueEntryID) throws {
    guard let place = try queue.open() else { return }
    // The note last: a receipt without its note would mean that it was processed.
    try place.forgetReceipt(id)
    try place.discard(QueueDirectory.outcomePath(id))
  }

  func expire() throws -> [String] {
    guard let place = try queue.open() else { return [] }
    return try place.expire(now: queue.clock()).map { path + "/" + $0 }
  }

  // MARK: Failures

  func failures() throws -> [QueueFailure] {
    guard let place = try queue.open() else { return [] }
    return try place.ids(in: QueueDirectory.failed).compactMap { try place.failure($0) }
  }

  func retry(_ id: QueueEntryID) throws -> QueueEntryID? {
    guard let place = try queue.open(), let failure = try place.failure(id) else { return nil }
    // Its consumer may have died before recording it.
    try place.note(.failed(reason: failure.reason), of: id, from: nil)
    if let attachment = failure.payload.attachmentID {
      try place.moveOnce(
        QueueDirectory.failedAttachmentPath(attachment), to: AttachmentLayout.path(attachment))
    }
    return try DirectoryBatchWriter(queue, id.batch.sender, limits: .standard)
      .adopt(QueueDirectory.failedPath(id))
  }

  func forgetFailure(_ id: QueueEntryID) throws -> Bool {
    guard let place = try queue.open() else { return false }
    if let attachment = try place.failure(id)?.payload.attachmentID {
      // In the second place if a process that was about to send it again was killed.
      for path in [
        QueueDirectory.failedAttachmentPath(attachment), AttachmentLayout.path(attachment),
      ] { try place.removeAttachmentDirectory(path) }
    }
    return try place.discard(QueueDirectory.failedPath(id))
  }

  // MARK: Withdrawing

  /// The number of batches that are changed under one lease: few enough for its term, because each
  /// may take two fsyncs, and two calls for each of its entries.
  private static let withdrawnAtOnce = 16

  func cancellation(
    of id: QueueEntryID?, until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<Int> {
    let queue = queue
    guard let id else { return cancellationOfAll(until: deadline) }
    return Change(queue.directory, .init(until: deadline)) { lease, _ in
      let found = try queue.open()?.withdraw([id.index], of: id.batch, as: .cancelled, lease)
      return found?.isComplete == true ? 1 : 0
    }
  }

  private func cancellationOfAll(
    until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<Int> {
    let queue = queue
    // Outside of the changes, which are repeated after a lost lease, and then find fewer.
    let count = Mutex(0)
    let changes = changing(until: deadline) {
      try queue.open()?.ordered(QueueDirectory.pending) ?? []
    } _: { batch, place, lease in
      let all = Set(batch.indices)
      let withdrawn = try place.withdraw(all, of: batch, as: .cancelled, lease).count
      count.withLock { $0 += withdrawn }
    }
    return StepwiseWait { try changes.step().then { .done(count.withLock(\.self)) } }
  }

  func supersede(_ key: String, before id: QueueEntryID) {
    do {
      let superseded = try queue.open()?.superseded(key, by: id) ?? []
      let batches = Dictionary(grouping: superseded, by: \.batch)
      let changes = changing(until: nil) {
        Array(batches.keys).ordered(by: <)
      } _: { batch, place, lease in
        let ids = batches[batch] ?? []
        _ = try place.withdraw(Set(ids.map(\.index)), of: batch, as: .superseded, lease)
        // Also those that were taken or are gone.
        for id in ids {
          if LeaseFault.supersedingOlderOnly.isActive {
            place.unmark(id, key)
          } else {
            place.unmarkIfGone(id, key)
          }
        }
      }
      try changes.run()
    } catch {
      // The new entry is stored, so the call has done its work.
      Diagnostics.report(
        WormholeError(
          .inputOutput, "withdraw older entries with the key \"\(key)\" from \"\(queue.name)\"",
          path: path, reason: "\(error)",
          remedy: "they may be delivered, too; the next send with the key tries again"))
    }
  }

  /// Returns the wait that changes waiting batches, several at a time under one lease.
  private func changing(
    until deadline: ContinuousClock.Instant?, _ list: @escaping @Sendable () throws -> [EntryFile],
    _ body: @escaping @Sendable (EntryFile, QueueDirectory, Lease) throws -> Void
  ) -> sending any Waiting<Void> {
    let queue = queue
    var rest: ArraySlice<EntryFile>?
    var change: Change<Void>?
    return StepwiseWait {
      if change == nil {
        let left = try rest ?? list()[...]
        let some = left.prefix(Self.withdrawnAtOnce)
        rest = left.dropFirst(some.count)
        guard !some.isEmpty else { return .done(()) }
        change = Change(queue.directory, .init(until: deadline)) { lease, _ in
          guard let place = try queue.open() else { return }
          for batch in some { try body(batch, place, lease) }
        }
      }
      guard let current = change else { return .again }
      return try current.step().then {
        change = nil
        return .again
      }
    }
  }
}

/// The right by which a consumer takes entries.
struct ConsumerRole {
  /// The name of its directory in `taken/`, which was never used.
  let name: String
  /// Nil for a sweep.
  let registration: PresenceRegistration?

  static func alone(_ own: PresenceRegistration?) -> Self {
    Self(name: "consumer-" + Nonce.next(), registration: own)
  }

  /// One of several.
  static func worker(_ own: PresenceRegistration) -> Self {
    Self(name: OtherConsumers.directory(of: own), registration: own)
  }
}

/// A queue's directory, held open from one step of a sender or consumer to the next.
///
/// Every step is a call on a path through this directory, so the step notices a removed directory
/// (ENOENT), which is then opened again. A directory that was moved away goes unnoticed for at most
/// a second, as with the container, unless a watch reports it.
final class OpenQueue: Sendable {
  private struct Held {
    let place: QueueDirectory
    let container: ContainerRoot.Handle
    /// By the clock of the machine.
    let opened: UInt64
  }

  let queue: PlainQueue
  private let held = Mutex<Held?>(nil)

  init(_ queue: PlainQueue) { self.queue = queue }

  /// Returns the directory.
  ///
  /// - Parameters:
  ///   - deadline: how long to wait for a process that copies the container.
  ///   - waitsForCopies: whether to wait for one at all. Tasks settle entries, and must not block.
  ///   - make: opens it if it is not held: nil if there is none.
  private func place(
    until deadline: ContinuousClock.Instant? = nil, waitsForCopies: Bool = true,
    _ make: () throws -> QueueDirectory?
  ) throws -> QueueDirectory? {
    if waitsForCopies {
      var copyPause = CopyPauseFile.CopyPauseWait()
      copyPause.wait(in: queue.directory.root, until: deadline)
    }
    let container = try queue.directory.root.handle()
    let now = bootTimeNanoseconds()
    let known = held.withLock { held -> QueueDirectory? in
      guard let held, held.container === container,
        now < held.opened + ContainerRoot.recheckNanoseconds
      else { return nil }
      return held.place
    }
    if let known { return known }
    let place = try make()
    let new = place.map { Held(place: $0, container: container, opened: now) }
    // Released outside the lock, because that closes a file.
    withExtendedLifetime(held.withLock { exchange(&$0, with: new) }) {}
    return place
  }

  func openOrMake() throws -> QueueDirectory {
    guard let place = try place({ try queue.openOrMake() }) else { throw queue.replaced() }
    return place
  }

  /// Returns the directory. A consumer does not create it: if it is gone, so are the batches that
  /// the consumer had taken.
  func openForConsumer(
    until deadline: ContinuousClock.Instant? = nil, waitsForCopies: Bool = true
  ) throws -> QueueDirectory {
    let place = try place(until: deadline, waitsForCopies: waitsForCopies) { try queue.open() }
    guard let place else {
      throw queue.replaced()
    }
    return place
  }

  /// Opens the directory again with the next step, if a watch of one of its parts reports that it may
  /// have been moved away.
  func note(_ news: WatchNews) {
    if news.isEverything || !news.own.isEmpty { forget() }
  }

  /// Opens the directory again with the next step, because a part of it is missing.
  func forget() { withExtendedLifetime(held.withLock { $0.take() }) {} }
}

extension DirectoryEngine: QueueEngine {
  package func queue(_ queue: PlainQueue) -> any QueueStore { DirectoryQueue(queue: queue) }

  package func attachments(of queue: PlainQueue) -> any AttachmentStore {
    DirectoryAttachments(queue: queue)
  }
}
