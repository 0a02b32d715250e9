import Synchronization
import WormholeSystem

extension Queue {
  /// Becomes the queue's consumer, until `close()`, until the consumer is released, or until the
  /// process ends. There is one consumer at a time; a stopped one is replaced.
  ///
  /// - Parameters:
  ///   - deadline: how long to wait for the current consumer; a past deadline means "only if there
  ///     is none". By default 10 seconds from now.
  ///   - attempts: after this many attempts, including those of earlier consumers, an entry that has
  ///     not ended fails: it is kept, and `failures()` lists it. By default any number.
  /// - Throws: `WormholeError.Code.timedOut`, whose `holder` is the current consumer; or errors of
  ///   the file system.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func consume(
    until deadline: ContinuousClock.Instant? = nil, attempts: Int? = nil
  ) throws -> QueueConsumer<Content> {
    try join(ConsumerTerms(attempts), until: deadline)
  }

  /// Becomes the queue's consumer; see the form without `async`.
  public func consume(
    until deadline: ContinuousClock.Instant? = nil, attempts: Int? = nil
  ) async throws -> QueueConsumer<Content> {
    try await join(ConsumerTerms(attempts), until: deadline)
  }

  /// Becomes one of the queue's workers: each entry goes to one of them, until `close()`, until the
  /// consumer is released, or until the process ends. Entries that a worker has not acknowledged
  /// when it dies, or when it has been stopped for 50 ms, are delivered to the others, marked; a
  /// stopped worker is noticed within a second.
  ///
  /// The entries of one sender are taken in their order, and several workers may handle them at the same
  /// time; a sender that needs strict order gets it from `consume`. Entries that were stored together,
  /// because their sender sent faster than it stored, are shared; on etcd they go to one worker.
  ///
  /// Workers wait for a consumer that has the queue alone. A consumer does not wait for workers: if
  /// it begins beside them, it takes its share, as they do.
  ///
  /// - Parameters:
  ///   - deadline: how long to wait for a consumer that has the queue alone; by default 10 seconds
  ///     from now.
  ///   - attempts: see `consume`.
  /// - Throws: `WormholeError`: as `consume`.
  /// - Complexity: as `consume`, and a registration; watches begin with the second entry or a wait.
  ///   Beside other workers, a look every three seconds at one of them, however many there are.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func work(
    until deadline: ContinuousClock.Instant? = nil, attempts: Int? = nil
  ) throws -> QueueConsumer<Content> {
    try join(
      ConsumerTerms(attempts, isWorker: true), until: deadline)
  }

  /// Becomes one of the queue's workers; see the form without `async`.
  public func work(
    until deadline: ContinuousClock.Instant? = nil, attempts: Int? = nil
  ) async throws -> QueueConsumer<Content> {
    try await join(
      ConsumerTerms(attempts, isWorker: true), until: deadline)
  }

  package func join(
    _ terms: ConsumerTerms, until deadline: ContinuousClock.Instant?
  ) throws -> QueueConsumer<Content> {
    try joining(terms, until: deadline).run()
  }

  package func join(
    _ terms: ConsumerTerms, until deadline: ContinuousClock.Instant?
  ) async throws -> QueueConsumer<Content> {
    try await runSuspending { joining(terms, until: deadline) }
  }

  private func joining(
    _ terms: ConsumerTerms, until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<QueueConsumer<Content>> {
    let wake = WakeLatch()
    // All attempts together wait this long, not each one.
    let deadline = deadline ?? .now + SharedContainer.standardWait
    var entry = ConsumerEpoch.entry(plain, terms, wake, until: deadline)
    return StepwiseWait {
      do {
        return try entry.step().then { .done(QueueConsumer(self, terms, wake: wake, epoch: $0)) }
      } catch let error as WormholeError
        where error.code == .leaseLost && !LeaseFault.failingToJoin.isActive
      {
        // Stopped while it joined, and replaced: it has begun nothing.
        entry = ConsumerEpoch.entry(plain, terms, wake, until: deadline)
        return .again
      }
    }
  }
}

/// The state of a consumer of any content.
private struct ConsumerState {
  /// How long a look may find much but no entry, before the next one.
  static let longestLook = Duration.seconds(1)

  /// The current epoch, or the last one.
  var epoch: ConsumerEpoch
  var count = 1
  /// Why it has to join again.
  var loss: WormholeError?
  var isClosed = false
  /// The latch of a caller of `next` that joins again.
  var joining: WakeLatch?
}

/// A queue's consumer, or one of its workers. Thread-safe.
///
/// ```swift
/// let consumer = try await container.queue("jobs", of: String.self).consume()
/// while let entry = try await consumer.next(until: .now + .seconds(5)) {
///   print(try entry.content)
///   try entry.acknowledge()
/// }
/// consumer.close()
/// ```
public final class QueueConsumer<Content: Codable & Sendable>: Sendable {
  /// The queue.
  public let queue: Queue<Content>
  private let terms: ConsumerTerms
  private let wake: WakeLatch
  private let state: Mutex<ConsumerState>
  private let hasSpentLook = Atomic(false)

  init(
    _ queue: Queue<Content>, _ terms: ConsumerTerms, wake: WakeLatch,
    epoch: ConsumerEpoch
  ) {
    self.queue = queue
    self.terms = terms
    self.wake = wake
    state = Mutex(ConsumerState(epoch: epoch))
  }

  deinit { close() }

  /// A descriptor for the program that handles an entry: see `PresenceRegistration.inheritable`.
  package var inheritable: Int32? { state.withLock(\.epoch).inheritable }

  /// Closes the consumer. Unacknowledged entries go to the next one as if given back: what this
  /// one did with them is not an attempt. A caller waiting in `next` is woken with
  /// `invalidToken`. Further calls have no effect.
  public func close() { end(asDeath: false) }

  /// Closes the consumer as the death of its process would, for other processes; here as `close`.
  package func abandon() { end(asDeath: true) }

  private func end(asDeath: Bool) {
    let (epoch, joining) = state.withLock { state in
      state.isClosed = true
      return (state.epoch, state.joining)
    }
    epoch.end(asDeath: asDeath)
    joining?.raise()
    wake.raise()
  }

  /// Promises that this consumer takes no entry after the current one, unless it loses or gives
  /// back that one, and is then closed. On etcd it leaves in the transaction that ends the entry.
  package func takesNoMore() { state.withLock(\.epoch).takesNoMore() }

  /// When its next entry to be tried again is due; nil if it has none.
  package var nextRetry: ContinuousClock.Instant? { state.withLock(\.epoch).nextRetry }

  /// Whether the last call of `next` has found no entry in its time, but not looked at all that waits.
  package var isSpent: Bool { hasSpentLook.load(ordering: .relaxed) }

  /// How often it has joined, including the first time.
  package var epochs: Int { state.withLock(\.count) }

  /// Returns whether no entry waits, not even a delayed one, and every taken entry is
  /// acknowledged.
  ///
  /// - Throws: `WormholeError.Code.leaseLost` after this consumer was replaced, until `next` has
  ///   joined again; otherwise as `next`.
  /// - Complexity: two listings, of waiting and of taken entries.
  public func isIdle() throws -> Bool { try isIdle(countsTaken: true) }

  /// - Parameter countsTaken: Whether entries that were taken and left for later count.
  package func isIdle(countsTaken: Bool) throws -> Bool {
    try queue.attempt("consume") {
      try confirmOpen()
      let (epoch, loss) = state.withLock { ($0.epoch, $0.loss) }
      if let loss { throw loss }
      return try epoch.place.isIdle(countsTaken: countsTaken)
    }
  }

  /// Calls a handler whenever `next` may have something new: an entry was stored, another
  /// consumer replaced this one, or this one was closed. Callers check `next` after setting the
  /// handler.
  ///
  /// - Parameter handler: called on the monitor's thread, so it must be short; replaces the
  ///   previous one.
  package func onWake(_ handler: @escaping @Sendable () -> Void) { wake.call(handler) }

  /// Takes the next entry, and waits for one if there is none. Earlier entries that are not
  /// acknowledged yet do not prevent this. If several wait, each entry goes to one of them.
  ///
  /// A consumer that was replaced, because its process was stopped, joins again within this call: a
  /// worker at once, the only consumer when its turn comes. Its entries go to its successor, and
  /// acknowledging them throws `leaseLost`. A consumer whose files were removed by a program
  /// joins again after two seconds without a removal, once the container exists.
  ///
  /// - Parameter deadline: how long to wait; a past deadline means "only if there is one now". Then a
  ///   second is enough time to go past what has expired or is damaged.
  /// - Returns: nil once the deadline has passed.
  /// - Throws: `WormholeError.Code.invalidToken` after it was closed, or errors of the file
  ///   system.
  /// - Complexity: one rename, open, fstat, read and close for all entries that were stored
  ///   together; a scan of everything that waits once the entries of the last scan are taken. Once
  ///   a second the queue's directory is opened again.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func next(until deadline: ContinuousClock.Instant) throws -> QueueEntry<Content>? {
    try nextDelivery(until: deadline).run().map(QueueEntry.init)
  }

  /// Takes the next entry; see the form without `async`. Cancelling the task ends the wait with
  /// `CancellationError`.
  public func next(until deadline: ContinuousClock.Instant) async throws -> QueueEntry<Content>? {
    try await runSuspending { self.nextDelivery(until: deadline) }.map(QueueEntry.init)
  }

  /// Takes the next entry, however long it takes. Cancelling the task ends the wait with
  /// `CancellationError`, and closing the consumer with `invalidToken`.
  ///
  /// - Throws: As the form with a deadline.
  public func next() async throws -> QueueEntry<Content> {
    guard let delivery = try await runSuspending({ self.nextDelivery(until: nil) }) else {
      preconditionFailure("without a deadline none passes")
    }
    return QueueEntry(delivery)
  }

  /// Returns the entries as they are taken, for `for try await`; one loop at a time.
  ///
  /// The loop ends when the consumer is closed, and throws as `next`: `CancellationError` when its
  /// task is cancelled. It continues after the consumer was replaced. The consumer remains open
  /// as long as the sequence is used.
  public func entries() -> ConsumerEntries<Content> { ConsumerEntries(consumer: self) }

  /// For tests: whether a caller waits in `next`.
  package var isAwaited: Bool { wake.isAwaited }

  // MARK: Taking

  /// Returns one caller's wait for the next entry; nil once the deadline has passed.
  private func nextDelivery(
    until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<Delivery?> {
    // While the consumer joins again.
    var entry: (any Waiting<ConsumerEpoch>)?
    let limit = deadline.map(CallLimit.callDeadline)
    return StepwiseWait { [self] in
      guard !isLost else {
        // The next call joins.
        if entry == nil, limit.hasPassed { return .done(nil) }
        return try joinAgain(&entry, until: deadline)
      }
      entry = nil
      // One look before each wait: anything later raises the latch.
      let latest = ContinuousClock.now + ConsumerState.longestLook
      let look = try take(until: deadline, limit.map { min($0, latest) } ?? latest)
      hasSpentLook.store(look.isSpent, ordering: .relaxed)
      if let delivery = look.delivery {
        // Another caller may wait for what came together with it.
        if wake.isAwaited { wake.raise() }
        return .done(delivery)
      }
      if isLost || look.isSpent && !deadline.hasPassed { return .again }
      return deadline.hasPassed ? .done(nil) : .wait(for: wake, until: deadline)
    }
  }

  /// Takes an entry; nil if there is none now, or if this consumer has to join again.
  private func take(
    until deadline: ContinuousClock.Instant?, _ limit: ContinuousClock.Instant
  ) throws -> (delivery: Delivery?, isSpent: Bool) {
    try queue.attempt("consume") {
      try confirmOpen()
      let epoch = state.withLock(\.epoch)
      do {
        return try epoch.take(until: deadline, limit)
      } catch  where error.isLossOfConsumer {
        // On etcd, or it was closed just now.
        try confirmOpen()
        let loss = try epoch.noteLoss(until: deadline)
        guard terms.joinsAgain else { throw loss }
        // One that has delivered nothing has lost nothing.
        if epoch.hasDelivered { Diagnostics.report(loss) }
        // Excludes: a loss of the epoch that another caller has begun meanwhile.
        state.withLock { if $0.epoch === epoch { $0.loss = loss } }
        epoch.endLater()
        return (nil, false)
      }
    }
  }

  /// Whether it was replaced, and has not joined again.
  private var isLost: Bool { state.withLock { $0.loss != nil } }

  private func joinAgain(
    _ entry: inout (any Waiting<ConsumerEpoch>)?, until deadline: ContinuousClock.Instant?
  ) throws -> WaitingStep<Delivery?> {
    try confirmOpen()
    guard ChangeMonitor.shared.isSettled(queue.container.root.path) else {
      return later(ChangeMonitor.pollInterval, deadline)
    }
    // A day is as good as no deadline.
    let current =
      entry
      ?? ConsumerEpoch.entry(
        queue.plain, terms, wake, until: deadline ?? .now + .seconds(86_400))
    entry = current
    do {
      let step = try current.step().then { epoch -> WaitingStep<Delivery?> in
        try goOn(epoch)
        return .again
      }
      if case .wait(let latch, _) = step {
        // Woken when this consumer is closed.
        state.withLock { $0.joining = latch }
        try confirmOpen()
      }
      return step
    } catch let error as WormholeError {
      entry = nil
      switch error.code {
      case .timedOut where deadline.hasPassed: return .done(nil)
      // Stopped once more while it joined, or the wait has reached its limit.
      case .leaseLost, .timedOut: return .again
      case .containerMissing: return later(ContainerRoot.recheck, deadline)
      case .inputOutput where error.errorNumber == Errno.noSuchFile.rawValue:
        return later(ContainerRoot.recheck, deadline)
      default: throw error
      }
    }
  }

  /// A program is removing files, which must not be created again meanwhile.
  private func later(
    _ pause: Duration, _ deadline: ContinuousClock.Instant?
  ) -> WaitingStep<Delivery?> {
    guard !deadline.hasPassed else { return .done(nil) }
    let next = ContinuousClock.now + pause
    return .wait(for: wake, until: deadline.map { min($0, next) } ?? next)
  }

  /// Continues with a new epoch, unless another caller was faster.
  private func goOn(_ epoch: ConsumerEpoch) throws {
    let isTaken = state.withLock { state in
      // Excludes: an epoch that begins after the consumer was closed, and never ends.
      guard state.loss != nil, !state.isClosed else { return false }
      (state.epoch, state.loss) = (epoch, nil)
      state.count += 1
      return true
    }
    if !isTaken { epoch.end() }
    try confirmOpen()
  }

  private func confirmOpen() throws {
    guard state.withLock(\.isClosed) else { return }
    throw WormholeError(
      .invalidToken, "consume \"\(queue.name)\"", path: queue.path, reason: "it was closed",
      remedy: "consume again")
  }
}
