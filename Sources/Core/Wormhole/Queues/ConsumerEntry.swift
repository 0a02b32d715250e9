import WormholeSystem

/// The wait of a process that becomes a consumer, for the consumers in its way.
final class ConsumerEntry: Waiting {
  private let queue: Queue
  private let terms: ConsumerTerms
  private let wake: AlarmLatch
  private let role: any Waiting<PresenceRegistration>
  private let deadline: ContinuousClock.Instant?

  init(
    _ queue: Queue, _ terms: ConsumerTerms, wake: AlarmLatch,
    until deadline: ContinuousClock.Instant?
  ) {
    self.queue = queue
    self.terms = terms
    self.wake = wake
    self.deadline = deadline
    role = queue.role.exclusiveEntry(until: deadline)
  }

  func step() throws -> WaitingStep<ConsumerTenure> {
    do {
      return try role.step().then { gate in
        try begin { try ConsumerTenure(of: queue, terms, wake, gate: gate, until: deadline) }
      }
    } catch let error as AppGroupError where error.code == .noSpace && terms.isWorker {
      // No other consumer has the queue alone: that was checked first.
      return try begin {
        try ConsumerTenure(of: queue, terms, wake, role: .unregistered(error), until: deadline)
      }
    }
  }

  private func begin(_ body: () throws -> ConsumerTenure) throws -> WaitingStep<ConsumerTenure> {
    try reporting(
      (terms.isWorker ? "work for" : "consume") + " \"\(queue.name)\"", path: queue.path
    ) { .done(try body()) }
  }
}

/// One caller's wait for the next entry; nil once the deadline has passed.
final class NextEntry: Waiting {
  private let consumer: Queue.Consumer
  private let deadline: ContinuousClock.Instant?
  /// While the consumer joins again.
  private var entry: ConsumerEntry?
  /// As good as none.
  private static let longest: Duration = .seconds(86_400)

  init(of consumer: Queue.Consumer, until deadline: ContinuousClock.Instant?) {
    self.consumer = consumer
    self.deadline = deadline
  }

  private var hasPassed: Bool { deadline.map { ContinuousClock.now >= $0 } ?? false }

  // One look before each wait: anything later raises the latch.
  func step() throws -> WaitingStep<QueueEntry?> {
    guard !consumer.isLost else { return try join() }
    entry = nil
    if let entry = try consumer.take(until: deadline) { return .done(entry) }
    if consumer.isLost { return .again }
    return hasPassed ? .done(nil) : .wait(for: consumer.wake.latch, until: deadline)
  }

  private func join() throws -> WaitingStep<QueueEntry?> {
    try consumer.confirmOpen()
    guard ChangeMonitor.shared.isSettled(consumer.queue.container.root.path) else {
      return later(ChangeMonitor.pollInterval)
    }
    let entry =
      entry
      ?? ConsumerEntry(
        consumer.queue, consumer.terms, wake: consumer.wake, until: deadline ?? .now + Self.longest)
    self.entry = entry
    do {
      let step = try entry.step().then { tenure -> WaitingStep<QueueEntry?> in
        try consumer.goOn(tenure)
        return .again
      }
      if case .wait(let latch, _) = step { try consumer.willWait(for: latch) }
      return step
    } catch let error as AppGroupError {
      self.entry = nil
      switch error.code {
      case .timedOut where hasPassed: return .done(nil)
      // Stopped once more while it joined, or the wait has reached its limit.
      case .leaseLost, .timedOut: return .again
      case .containerMissing: return later(ContainerRoot.recheck)
      case .inputOutput where error.errorNumber == Errno.noSuchFile.rawValue:
        return later(ContainerRoot.recheck)
      default: throw error
      }
    }
  }

  /// A program removes files, which must not be created again meanwhile.
  private func later(_ pause: Duration) -> WaitingStep<QueueEntry?> {
    let next = ContinuousClock.now + pause
    return hasPassed
      ? .done(nil) : .wait(for: consumer.wake.latch, until: deadline.map { min($0, next) } ?? next)
  }
}
