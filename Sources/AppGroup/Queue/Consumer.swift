import Dispatch
import Synchronization
import SystemCalls

extension Queue {
  /// Becomes the queue's consumer, until `end()`, until the consumer is forgotten, or until the
  /// process ends. Only one consumes at a time; one that is stopped is replaced.
  ///
  /// - Parameters:
  ///   - deadline: until when to wait for another one; already past means "only if there is none". By
  ///     default 10 seconds from now.
  ///   - maximumDeliveries: after so many deliveries, also to consumers before, an entry that is not
  ///     ended has failed: it is kept, and `failures()` lists it. By default any number.
  /// - Throws: `AppGroupError`: `timedOut`, its `holder` who consumes; or what the file system
  ///   refuses.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func consume(
    until deadline: ContinuousClock.Instant? = nil, maximumDeliveries: Int? = nil
  ) throws -> Consumer {
    try begin(role.enterExclusively(until: deadline), maximumDeliveries)
  }

  /// Becomes the queue's consumer; see the form without `async`.
  public func consume(
    until deadline: ContinuousClock.Instant? = nil, maximumDeliveries: Int? = nil
  ) async throws -> Consumer {
    let registration = try await role.enterExclusively(until: deadline)
    return try await Blocking.run { try self.begin(registration, maximumDeliveries) }
  }

  private func begin(
    _ registration: PresenceRegistration, _ maximumDeliveries: Int?
  ) throws -> Consumer {
    try reporting("consume \"\(name)\"", path: path) {
      let wake = ConsumerWake()
      let released = ReleasedEntries { wake.raise() }
      let steps = try ConsumerSteps(
        self, .init(maximumDeliveries: maximumDeliveries, released: released))
      // Stopped between the two, it may have replaced its own successor, who begins again then; so
      // must whoever has no right to the role.
      try registration.confirm()
      return Consumer(self, registration, steps, wake)
    }
  }

  /// The one who consumes a queue. Thread-safe.
  public final class Consumer: Sendable {
    /// The queue.
    public let queue: Queue
    private let registration: PresenceRegistration
    private let steps: Mutex<ConsumerSteps>
    private let wake: ConsumerWake
    private let watches: [Watch]
    private let isEnded = Atomic(false)

    fileprivate init(
      _ queue: Queue, _ registration: PresenceRegistration, _ steps: ConsumerSteps,
      _ wake: ConsumerWake
    ) {
      self.queue = queue
      self.wake = wake
      self.registration = registration
      self.steps = Mutex(steps)
      let directory = queue.place.directory
      let root = directory.root
      // Only say that it is worth looking again: something was stored, or a successor has renamed
      // this consumer's directory.
      watches = [QueueDirectory.pending, QueueDirectory.taken].map { part in
        ChangeMonitor.shared.watch(
          path: directory.path + "/" + part,
          parents: directory.kind.parents(in: root) + [directory.path],
          prepare: { try queue.place.makeParts(at: queue.place.openOrMake()) },
          hear: { _ in wake.raise() })
      }
    }

    deinit { end() }

    /// Ends consuming: what was not acknowledged goes to the next consumer. Whoever waits in `next`
    /// is woken, and gets `invalidToken`. Once is enough.
    public func end() {
      isEnded.store(true, ordering: .sequentiallyConsistent)
      for watch in watches { watch.cancel() }
      registration.leave()
      wake.raise()
    }

    /// Whether nothing waits, and nothing that was taken is still to be acknowledged.
    ///
    /// - Throws: `AppGroupError`: as `next`.
    /// - Complexity: two listings: of what waits, and of what is taken.
    public func isIdle() throws -> Bool {
      try reporting("consume \"\(queue.name)\"", path: queue.path) {
        try confirmNotEnded()
        let place = try queue.openForConsumer()
        // In this order an entry that is being taken is seen in one of the two.
        let waiting = try queue.place.batches(QueueDirectory.pending, at: place) ?? []
        guard waiting.isEmpty else { return false }
        return try steps.withLock { try $0.hasNothingTaken(at: place) }
      }
    }

    /// Calls a handler whenever `next` may have more than before: something was stored, another
    /// consumer replaced this one, or it was ended. Whoever sets it looks afterwards.
    ///
    /// - Parameter handler: called on the monitor's thread, so it must be short; takes the place of
    ///   the one before.
    package func onWake(_ handler: @escaping @Sendable () -> Void) { wake.call(handler) }

    /// Takes the next entry, and waits for one if there is none. Entries that were taken before and
    /// are not acknowledged yet are no hindrance. One caller waits at a time.
    ///
    /// - Parameter deadline: until when to wait; already past means "only if there is one now".
    /// - Returns: nil when the deadline has passed.
    /// - Throws: `AppGroupError`: `leaseLost` when another consumer has replaced this one,
    ///   `invalidToken` once it was ended, or what the file system refuses.
    /// - Complexity: one rename, open, read and close for all entries that were stored together; a
    ///   look at all that waits once what the last look has shown is taken.
    @available(*, noasync, message: "it blocks; await the other form, in an async function")
    public func next(until deadline: ContinuousClock.Instant) throws -> QueueEntry? {
      while true {
        if let entry = try step() { return entry }
        guard ContinuousClock.now < deadline else { return nil }
        wake.latch.block(until: deadline)
      }
    }

    /// Takes the next entry; see the form without `async`. Cancelling the task ends the wait with
    /// `CancellationError`.
    public func next(until deadline: ContinuousClock.Instant) async throws -> QueueEntry? {
      while true {
        try Task.checkCancellation()
        if let entry = try await Blocking.run({ try self.step() }) { return entry }
        guard ContinuousClock.now < deadline else { return nil }
        await wake.latch.suspend(until: deadline)
      }
    }

    /// For tests: whether somebody waits in `next`.
    package var isAwaited: Bool { wake.latch.isAwaited }

    // One look before each wait: what comes after it raises the latch.
    private func step() throws -> QueueEntry? {
      try reporting("consume \"\(queue.name)\"", path: queue.path) {
        try confirmNotEnded()
        return try steps.withLock { steps in
          do {
            if let entry = try steps.next() { return entry }
            if let due = steps.due { wake.raise(at: due) }
            return nil
          } catch let error as Errno where error == .noSuchFile {
            // Not even the queue's directory is there any more.
            throw queue.replaced()
          }
        }
      }
    }

    private func confirmNotEnded() throws {
      guard isEnded.load(ordering: .sequentiallyConsistent) else { return }
      throw AppGroupError(
        .invalidToken, "consume \"\(queue.name)\"", path: queue.path, reason: "it was ended",
        remedy: "consume again")
    }
  }
}

/// Wakes whoever is to look again: who waits in `next`, and who wants to be called.
private final class ConsumerWake: Sendable {
  let latch = WakeLatch()
  private let handler = Mutex<(@Sendable () -> Void)?>(nil)
  /// When it is to be raised next.
  private let alarm = Mutex<ContinuousClock.Instant?>(nil)

  func call(_ handler: @escaping @Sendable () -> Void) {
    self.handler.withLock { $0 = handler }
  }

  func raise() {
    latch.raise()
    handler.withLock { $0 }?()
  }

  /// Raises it at a moment, or some days before: the look that follows asks again.
  func raise(at moment: ContinuousClock.Instant) {
    let moment = min(moment, .now + .seconds(86_400))
    let isFirst = alarm.withLock { alarm in
      // Excludes: a timer for each look that finds nothing yet.
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
