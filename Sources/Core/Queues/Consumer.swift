import Containers
import Dispatch
import Monitoring
import Presences
import Synchronization
import SystemCalls
import Values

extension Queue {
  /// Becomes the queue's consumer, until `close()`, until the consumer is released, or until the
  /// process ends. There is one consumer at a time; a stopped one is replaced.
  ///
  /// - Parameters:
  ///   - deadline: how long to wait for the current consumer; a past deadline means "only if there
  ///     is none". By default 10 seconds from now.
  ///   - maximumDeliveries: after this many deliveries, including those to earlier consumers, an
  ///     entry that has not ended has failed: it is kept, and `failures()` lists it. By default any
  ///     number.
  /// - Throws: `AppGroupError`: `timedOut`, whose `holder` is the current consumer; or errors of
  ///   the file system.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func consume(
    until deadline: ContinuousClock.Instant? = nil, maximumDeliveries: Int? = nil
  ) throws -> Consumer {
    let registration = try role.enterExclusively(until: deadline)
    return try CallLimit.within(deadline) { try begin(registration, maximumDeliveries) }
  }

  /// Becomes the queue's consumer; see the form without `async`.
  public func consume(
    until deadline: ContinuousClock.Instant? = nil, maximumDeliveries: Int? = nil
  ) async throws -> Consumer {
    let registration = try await role.enterExclusively(until: deadline)
    return try await Blocking.run {
      try CallLimit.within(deadline) { try self.begin(registration, maximumDeliveries) }
    }
  }

  /// Becomes one of the queue's workers: each entry goes to one of them, until `close()`, until the
  /// consumer is released, or until the process ends. What a worker has not acknowledged when it
  /// dies, or when it has been stopped for 50 ms, is delivered to the others, marked; a stopped one
  /// is noticed within a second.
  ///
  /// The entries of one sender are taken in their order. Several workers may handle them at the same
  /// time, unless all workers keep the order: then a worker gets none of a sender as long as another
  /// has one that is not acknowledged. For that, each priority of a sender counts as a sender of its
  /// own, and a delayed entry may be handled beside any. Entries that were stored together, because their sender sent
  /// faster than it stored, go to one worker.
  ///
  /// Workers wait for a consumer that has the queue alone. A consumer does not wait for workers: one
  /// that begins beside them takes its share, as they do.
  ///
  /// - Parameters:
  ///   - deadline: how long to wait for a consumer that has the queue alone; by default 10 seconds
  ///     from now.
  ///   - maximumDeliveries: see `consume`.
  ///   - keepsOrder: whether no two workers handle entries of one sender at the same time. All workers
  ///     of a queue have to agree.
  /// - Throws: `AppGroupError`: as `consume`.
  /// - Complexity: as `consume`, and a registration; with `keepsOrder` two listings for each other
  ///   worker with each file that is taken. While there are other workers, a look at their
  ///   registrations each second, and with each event.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func work(
    until deadline: ContinuousClock.Instant? = nil, maximumDeliveries: Int? = nil,
    keepsOrder: Bool = false
  ) throws -> Consumer {
    let gate = try role.enterExclusively(until: deadline)
    return try CallLimit.within(deadline) { try beginWork(gate, maximumDeliveries, keepsOrder) }
  }

  /// Becomes one of the queue's workers; see the form without `async`.
  public func work(
    until deadline: ContinuousClock.Instant? = nil, maximumDeliveries: Int? = nil,
    keepsOrder: Bool = false
  ) async throws -> Consumer {
    let gate = try await role.enterExclusively(until: deadline)
    return try await Blocking.run {
      try CallLimit.within(deadline) { try self.beginWork(gate, maximumDeliveries, keepsOrder) }
    }
  }

  private func begin(
    _ registration: PresenceRegistration, _ maximumDeliveries: Int?
  ) throws -> Consumer {
    try reporting("consume \"\(name)\"", path: path) {
      let wake = ConsumerWake()
      let released = ReleasedEntries { wake.raise() }
      let terms = DeliveryTerms(
        OpenQueue(self), maximumDeliveries: maximumDeliveries, released: released)
      let steps = ConsumerSteps(try store.source(for: .alone(registration), terms), terms)
      // Stopped between the two steps, this may have replaced its own successor, which then begins
      // again. So must a process that has no right to the role.
      try registration.confirm()
      return Consumer(self, registration, steps, wake)
    }
  }

  /// - Parameter gate: the role of the only consumer. A worker has it while it begins, so that it
  ///   waits for a consumer that has the queue alone, and that consumer sees its directory.
  private func beginWork(
    _ gate: PresenceRegistration, _ maximumDeliveries: Int?, _ keepsOrder: Bool
  ) throws -> Consumer {
    defer { gate.close() }
    return try reporting("work for \"\(name)\"", path: path) {
      let wake = ConsumerWake()
      let released = ReleasedEntries { wake.raise() }
      let registration = try role.enter()
      do {
        let terms = DeliveryTerms(
          OpenQueue(self), maximumDeliveries: maximumDeliveries, keepsOrder: keepsOrder,
          released: released)
        let steps = ConsumerSteps(
          try store.source(for: .worker(registration, gate: gate), terms), terms)
        try gate.confirm()
        let presence = try role.observe(on: Blocking.queue()) { _ in wake.raiseForChange() }
        return Consumer(self, registration, steps, wake, observing: presence)
      } catch {
        registration.close()
        throw error
      }
    }
  }

  /// A queue's consumer, or one of its workers. Thread-safe.
  ///
  /// ```swift
  /// let consumer = try await container.queue("jobs").consume()
  /// while let entry = try await consumer.next(until: .now + .seconds(5)) {
  ///   print(entry.payload)
  ///   try entry.acknowledge()
  /// }
  /// consumer.close()
  /// ```
  public final class Consumer: Sendable {
    /// The queue.
    public let queue: Queue
    private let registration: PresenceRegistration
    /// Taken only by one caller of `next` at a time, for as long as its look lasts.
    private let steps: Mutex<ConsumerSteps>
    private let place: any ConsumerPlace
    private let wake: ConsumerWake
    private let watches: [any Cancelling]
    /// Of a worker that keeps the order.
    private let obstacles: Obstacles?
    /// Of a worker: tells when others come, leave or die.
    private let presence: ObservationToken?
    private let isClosed = Atomic(false)

    fileprivate init(
      _ queue: Queue, _ registration: PresenceRegistration, _ steps: ConsumerSteps,
      _ wake: ConsumerWake, observing presence: ObservationToken? = nil
    ) {
      self.queue = queue
      self.presence = presence
      obstacles = steps.keepsOrder ? Obstacles(of: queue, wake.latch) : nil
      self.wake = wake
      self.registration = registration
      place = steps.place
      watches = place.watch { wake.raise() }
      self.steps = Mutex(steps)
    }

    deinit { close() }

    /// Closes the consumer: what was not acknowledged goes to the next one. A caller waiting in
    /// `next` is woken with `invalidToken`. Further calls have no effect.
    public func close() { end { $0.close() } }

    /// Closes the consumer as the death of its process would, for other processes; here as `close`.
    package func abandon() { end { $0.abandon() } }

    private func end(_ end: (PresenceRegistration) -> Void) {
      isClosed.store(true, ordering: .sequentiallyConsistent)
      for watch in watches { watch.cancel() }
      presence?.cancel()
      place.end()
      end(registration)
      wake.raise()
    }

    /// Returns whether nothing waits, not even a delayed entry, and nothing taken is still to be
    /// acknowledged.
    ///
    /// - Throws: `AppGroupError`: as `next`.
    /// - Complexity: two listings, of waiting and of taken entries.
    public func isIdle() throws -> Bool {
      try reporting("consume \"\(queue.name)\"", path: queue.path) {
        try confirmOpen()
        return try place.isIdle()
      }
    }

    /// Calls a handler whenever `next` may have something new: something was stored, another
    /// consumer replaced this one, or this one was closed. Callers check `next` after setting the
    /// handler.
    ///
    /// - Parameter handler: called on the monitor's thread, so it must be short; replaces the
    ///   previous one.
    package func onWake(_ handler: @escaping @Sendable () -> Void) { wake.call(handler) }

    /// Takes the next entry, and waits for one if there is none. Entries that were taken before and
    /// are not acknowledged yet do not prevent this. There is one waiting caller at a time.
    ///
    /// - Parameter deadline: how long to wait; a past deadline means "only if there is one now".
    /// - Returns: nil once the deadline has passed.
    /// - Throws: `AppGroupError`: `leaseLost` if another consumer has replaced this one,
    ///   `invalidToken` after it was closed, or errors of the file system.
    /// - Complexity: one rename, open, fstat, read and close for all entries that were stored
    ///   together; a scan of everything that waits once the entries of the last scan are taken. Once
    ///   a second the queue's directory is opened again.
    @available(*, noasync, message: "it blocks; await the other form, in an async function")
    public func next(until deadline: ContinuousClock.Instant) throws -> QueueEntry? {
      try NextEntry(of: self, until: deadline).run()
    }

    /// Takes the next entry; see the form without `async`. Cancelling the task ends the wait with
    /// `CancellationError`.
    public func next(until deadline: ContinuousClock.Instant) async throws -> QueueEntry? {
      try await runSuspending { NextEntry(of: self, until: deadline) }
    }

    /// Takes the next entry, however long it takes. Cancelling the task ends the wait with
    /// `CancellationError`, and closing the consumer with `invalidToken`.
    ///
    /// - Throws: As the form with a deadline.
    public func next() async throws -> QueueEntry {
      guard let entry = try await runSuspending({ NextEntry(of: self, until: nil) }) else {
        preconditionFailure("without a deadline none passes")
      }
      return entry
    }

    /// Returns the entries as they are taken, for `for try await`; one loop at a time.
    ///
    /// The loop ends when the consumer is closed, and throws as `next`: `leaseLost` when another
    /// consumer has replaced this one, `CancellationError` when its task is cancelled. The consumer
    /// remains open as long as the sequence is used.
    public func entries() -> ConsumerEntries { ConsumerEntries(consumer: self) }

    /// For tests: whether a caller waits in `next`.
    package var isAwaited: Bool { wake.latch.isAwaited }

    /// One caller's wait for the next entry; nil once the deadline has passed.
    private final class NextEntry: Waiting {
      private let consumer: Consumer
      private let deadline: ContinuousClock.Instant?

      init(of consumer: Consumer, until deadline: ContinuousClock.Instant?) {
        self.consumer = consumer
        self.deadline = deadline
      }

      // One look before each wait: anything later raises the latch.
      func step() throws -> WaitingStep<QueueEntry?> {
        let entry = try CallLimit.within(deadline) { try consumer.take() }
        if let entry { return .done(entry) }
        if let deadline, ContinuousClock.now >= deadline { return .done(nil) }
        return .wait(for: consumer.wake.latch, until: deadline)
      }
    }

    private func take() throws -> QueueEntry? {
      try reporting("consume \"\(queue.name)\"", path: queue.path) {
        try confirmOpen()
        do {
          return try steps.withLock { steps in
            if wake.takeChange() { steps.noteChange() }
            while true {
              if let entry = try steps.next() { return entry }
              if let due = steps.due { wake.raise(at: due) }
              guard let obstacles, try obstacles.watch(steps.obstacles) else { return nil }
            }
          }
        } catch  where Self.isLoss(error) {
          // Its own directory is gone, or even the queue's; or, on etcd, it was closed just now.
          try confirmOpen()
          try noteLoss()
          throw queue.replaced()
        }
      }
    }

    private static func isLoss(_ error: any Error) -> Bool {
      error as? Errno == .noSuchFile || (error as? AppGroupError)?.code == .leaseLost
    }

    // Without a successor another program has removed it, perhaps with the whole container.
    private func noteLoss() throws {
      do {
        try registration.confirm()
        place.noteRemoval()
      } catch let error as AppGroupError where error.code == .leaseLost {
        return
      }
    }

    private func confirmOpen() throws {
      guard isClosed.load(ordering: .sequentiallyConsistent) else { return }
      throw AppGroupError(
        .invalidToken, "consume \"\(queue.name)\"", path: queue.path, reason: "it was closed",
        remedy: "consume again")
    }
  }
}

/// The entries that a consumer takes.
///
/// ```swift
/// let worker = try await container.queue("jobs").work()
/// for try await entry in worker.entries() { try entry.acknowledge() }
/// ```
public struct ConsumerEntries: AsyncSequence, Sendable {
  let consumer: Queue.Consumer

  /// Makes an iterator; for one task at a time.
  public func makeAsyncIterator() -> Iterator { Iterator(consumer: consumer) }

  /// The iterator.
  public struct Iterator: AsyncIteratorProtocol {
    let consumer: Queue.Consumer

    /// Takes the next entry; nil after the consumer was closed.
    ///
    /// - Throws: As `Queue.Consumer.next`.
    public func next() async throws -> QueueEntry? {
      do {
        return try await consumer.next()
      } catch let error as AppGroupError where error.code == .invalidToken {
        return nil
      }
    }
  }
}

/// The wake-up of a caller that waits in `next`, and of the `onWake` handler.
private final class ConsumerWake: Sendable {
  let latch = WakeLatch()
  private let handler = Mutex<(@Sendable () -> Void)?>(nil)
  /// Whether the other consumers are to be looked at.
  private let hasChanged = Atomic(false)
  /// When the alarm is next due.
  private let alarm = Mutex<ContinuousClock.Instant?>(nil)

  func call(_ handler: @escaping @Sendable () -> Void) {
    self.handler.withLock { $0 = handler }
  }

  func raise() {
    latch.raise()
    handler.withLock { $0 }?()
  }

  /// Raises it because another worker came, left or died.
  func raiseForChange() {
    hasChanged.store(true, ordering: .sequentiallyConsistent)
    raise()
  }

  func takeChange() -> Bool { hasChanged.exchange(false, ordering: .sequentiallyConsistent) }

  /// Raises it at a moment, or some days earlier: the look that follows asks again.
  func raise(at moment: ContinuousClock.Instant) {
    let moment = min(moment, .now + .seconds(86_400))
    let isFirst = alarm.withLock { alarm in
      // Excludes: one timer for each look that finds nothing yet.
      if let alarm, alarm <= moment { return false }
      alarm = moment
      return true
    }
    guard isFirst else { return }
    let pause = ContinuousClock.now.duration(to: moment)
    Blocking.timers.asyncAfter(deadline: .now() + pause.dispatchInterval) { [weak self] in
      self?.ring(moment)
    }
  }

  private func ring(_ moment: ContinuousClock.Instant) {
    alarm.withLock { if $0 == moment { $0 = nil } }
    raise()
  }
}
