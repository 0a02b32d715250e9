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
  /// Only for a worker that keeps the order.
  private let obstacles: Obstacles?
  private let sight = Mutex(Sight())

  /// The latch that wakes a caller of `next`. It begins with the second look, so that taking one
  /// waiting entry does not cost any watch.
  private struct Sight {
    var hasLooked = false
    /// The watches of the queue, and for a worker also of others that enter, leave or die.
    var watches: [any Cancelling]?
    var isEnded = false
  }

  /// - Parameter gate: the role of the only consumer. A worker has it while it begins, so that it
  ///   waits for a consumer that has the queue alone, and that consumer sees its directory.
  convenience init(
    of queue: Queue, _ terms: ConsumerTerms, _ wake: AlarmLatch, gate: PresenceRegistration,
    until deadline: ContinuousClock.Instant?
  ) throws {
    if terms.isWorker {
      defer { gate.close() }
      // The gate has just tidied up.
      let registration = try queue.limited(until: deadline).role.enter(nil, tidies: false)
      try self.init(
        of: queue, terms, wake, role: .worker(registration, gate: gate), registration: registration,
        gate: gate, until: deadline)
    } else {
      try self.init(
        of: queue, terms, wake, role: .alone(gate), registration: gate, gate: gate, until: deadline)
    }
  }

  /// - Parameters:
  ///   - registration: of this process, which ends with the tenure.
  ///   - gate: as above; none without a registration.
  ///   - deadline: As in `ConsumerSource.take`.
  init(
    of queue: Queue, _ terms: ConsumerTerms, _ wake: AlarmLatch, role: ConsumerRole,
    registration: PresenceRegistration? = nil, gate: PresenceRegistration? = nil,
    until deadline: ContinuousClock.Instant?
  ) throws {
    let deliveries = DeliveryTerms(
      directory: OpenQueue(queue), consumer: terms, released: ReleasedEntries { wake.raise() })
    do {
      let source = try queue.store.source(for: role, deliveries, until: deadline)
      let steps = ConsumerSteps(source, deliveries)
      // Stopped between the two steps, this may have replaced its own successor, which then begins
      // again. A process without a right to the role must begin again, too.
      try gate?.confirm(until: deadline)
      place = steps.place
      obstacles = terms.keepsOrder ? Obstacles(queue.store.endWatch(), wake.latch) : nil
      self.steps = Mutex(steps)
    } catch {
      registration?.close()
      throw error
    }
    self.queue = queue
    self.registration = registration
    self.wake = wake
    self.terms = terms
  }

  /// Takes an entry; nil if there is none now.
  ///
  /// - Parameter deadline: As in `ConsumerSource.take`.
  func take(until deadline: ContinuousClock.Instant?) throws -> QueueEntry? {
    try steps.withLock { steps in
      if isFirstLook, let entry = try steps.next(until: deadline) { return entry }
      if try watch(until: deadline) { steps.noteChange() }
      if wake.takeChange() { steps.noteChange() }
      while true {
        if let entry = try steps.next(until: deadline) { return entry }
        if let due = steps.due { wake.raise(at: due) }
        guard let obstacles, try obstacles.watch(steps.obstacles) else { return nil }
      }
    }
  }

  private var isFirstLook: Bool {
    sight.withLock { sight in
      defer { sight.hasLooked = true }
      return !sight.hasLooked
    }
  }

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

  /// Whether an error means that its own directory, or the container, is gone; on etcd its key.
  func isLoss(_ error: any Error) -> Bool {
    let code = (error as? AppGroupError)?.code
    return error as? Errno == .noSuchFile || code == .leaseLost || code == .containerMissing
  }

  /// - Parameter deadline: As in `ConsumerSource.take`.
  /// - Returns: the description of the loss.
  func noteLoss(until deadline: ContinuousClock.Instant?) throws -> AppGroupError {
    let remedy = terms.joinsAgain ? "it joins again by itself" : "consume again"
    do {
      try registration?.confirm(until: deadline)
      try place.noteLoss()
      return queue.replaced(remedy: remedy)
    } catch let error as AppGroupError where [.leaseLost, .containerMissing].contains(error.code) {
      return queue.replaced(by: error.holder, remedy: remedy)
    }
  }

  /// - Parameter leave: how the registration ends.
  func end(_ leave: (PresenceRegistration) -> Void) {
    let watches = sight.withLock { sight in
      sight.isEnded = true
      return sight.watches
    }
    for watch in watches ?? [] { watch.cancel() }
    place.end()
    if let registration { leave(registration) }
  }
}
