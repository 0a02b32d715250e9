import Synchronization
import WormholeSystem

/// How a consumer takes part in its queue, each time that it joins.
package struct ConsumerTerms: Sendable {
  /// The number of deliveries after which an entry has failed; nil for any number.
  let maximumDeliveries: Int?
  /// Whether it joins again after it was replaced; otherwise `next` throws `leaseLost`.
  let joinsAgain: Bool
  let isWorker: Bool
  /// Whether no two workers have entries of one sender.
  let keepsOrder: Bool

  package init(
    _ maximumDeliveries: Int? = nil, joinsAgain: Bool = true, isWorker: Bool = false,
    keepsOrder: Bool = false
  ) {
    self.maximumDeliveries = maximumDeliveries
    self.joinsAgain = joinsAgain
    self.isWorker = isWorker
    self.keepsOrder = keepsOrder
  }
}

/// The time of a consumer from joining to its end, or to its loss. Thread-safe.
final class ConsumerTenure: Sendable {
  let place: any ConsumerPlace
  private let queue: Queue
  /// Nil if there was no room for it.
  private let registration: PresenceRegistration?
  private let wake: AlarmLatch
  private let terms: ConsumerTerms
  /// Taken only by one caller of `next` at a time, for as long as its look lasts.
  private let steps: Mutex<ConsumerSteps>
  private let sight = Mutex(Sight())

  /// The latch that wakes a caller of `next`.
  private struct Sight {
    /// The watches of the queue, and for a worker also of others that enter, leave or die.
    var watches: [any Cancelling]?
    var isEnded = false
  }

  /// Returns the wait of a process that becomes a consumer, for the consumers in its way.
  static func entry(
    _ queue: Queue, _ terms: ConsumerTerms, _ wake: AlarmLatch,
    until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<ConsumerTenure> {
    let role = queue.role.exclusiveEntry(until: deadline)
    let action = terms.isWorker ? "work for" : "consume"
    func begin(_ role: () throws -> ConsumerRole) throws -> WaitingStep<ConsumerTenure> {
      try queue.attempt(action) {
        try .done(ConsumerTenure(of: queue, terms, wake, role(), until: deadline))
      }
    }
    return StepwiseWait {
      do {
        return try role.step().then { gate in
          try begin {
            guard terms.isWorker else { return .alone(gate) }
            // The gate has just tidied up.
            let own = try queue.limited(until: deadline).role.enter(nil, tidies: false)
            return .worker(own, gate: gate)
          }
        }
      } catch let error as AppGroupError where error.code == .noSpace && terms.isWorker {
        // No other consumer has the queue alone: that was checked first.
        return try begin { .unregistered(error) }
      }
    }
  }

  private init(
    of queue: Queue, _ terms: ConsumerTerms, _ wake: AlarmLatch, _ role: ConsumerRole,
    until deadline: ContinuousClock.Instant?
  ) throws {
    let deliveries = DeliveryTerms(OpenQueue(queue), terms, wake)
    let gate: PresenceRegistration?
    switch role {
    case .alone(let own): (registration, gate) = (own, own)
    case .worker(let own, let shared): (registration, gate) = (own, shared)
    case .unregistered: (registration, gate) = (nil, nil)
    }
    defer { if terms.isWorker { gate?.close() } }
    do {
      let source = try queue.store.source(for: role, deliveries, until: deadline)
      // Stopped between the two steps, this may have replaced its own successor, which then begins
      // again. A process without a right to the role must begin again, too.
      try gate?.confirm(until: deadline)
      place = source.place
      steps = Mutex(ConsumerSteps(source, deliveries))
    } catch {
      registration?.close()
      throw error
    }
    self.queue = queue
    self.wake = wake
    self.terms = terms
  }

  /// Takes an entry; nil if there is none now.
  func take(until deadline: ContinuousClock.Instant?) throws -> QueueEntry? {
    try steps.withLock { steps in
      if steps.isFirstLook, let entry = try steps.next(until: deadline) { return entry }
      if try watch(until: deadline) { steps.source.noteChange() }
      if wake.takeChange() { steps.source.noteChange() }
      if let entry = try steps.next(until: deadline) { return entry }
      if let due = steps.due { wake.raise(at: due) }
      return nil
    }
  }

  /// Begins to wake the callers of `next`: with the second look, so that taking one waiting entry
  /// does not cost any watch.
  ///
  /// - Returns: Whether it has begun now: earlier events may be unknown.
  private func watch(until deadline: ContinuousClock.Instant?) throws -> Bool {
    guard sight.withLock({ $0.watches == nil && !$0.isEnded }) else { return false }
    try registration?.watch()
    var watches: [any Cancelling] = []
    if terms.isWorker {
      watches.append(
        try queue.limited(until: deadline).role.observe(on: Blocking.queue()) { [wake] _ in
          wake.raiseForChange()
        })
    }
    watches += place.watch { [wake] in wake.raise() }
    let isKept = sight.withLock { sight in
      // Excludes: watches that begin after the end.
      if !sight.isEnded { sight.watches = watches }
      return !sight.isEnded
    }
    if !isKept { for watch in watches { watch.cancel() } }
    return true
  }

  /// - Returns: the description of the loss.
  func noteLoss(until deadline: ContinuousClock.Instant?) throws -> AppGroupError {
    let remedy = terms.joinsAgain ? "it joins again by itself" : "consume again"
    do {
      try registration?.confirm(until: deadline)
      try place.noteLoss()
      return queue.replaced(remedy: remedy)
    } catch let error as AppGroupError where error.isLossOfConsumer {
      return queue.replaced(by: error.holder, remedy: remedy)
    }
  }

  /// - Parameter asDeath: whether the registration ends as if this process had died.
  func end(asDeath: Bool = false) {
    let watches = sight.withLock { sight in
      sight.isEnded = true
      return sight.watches
    }
    for watch in watches ?? [] { watch.cancel() }
    place.end()
    registration?.end(asDeath: asDeath)
  }
}

extension Error {
  /// Whether it means that a consumer's own directory, or the container, is gone; on etcd its key.
  var isLossOfConsumer: Bool {
    let code = (self as? AppGroupError)?.code
    return self as? Errno == .noSuchFile || code == .leaseLost || code == .containerMissing
  }
}

extension Queue {
  package func replaced(
    by holder: LeaseHolder? = nil, remedy: String = "go on with the next entry"
  ) -> AppGroupError {
    AppGroupError(
      .leaseLost, "consume \"\(name)\"", path: path,
      reason: (holder.map { "\($0)," } ?? "another consumer")
        + " has replaced this one, because it was stopped, or the queue was removed; what was not "
        + "acknowledged is delivered to it again",
      remedy: remedy, holder: holder)
  }
}
