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
  /// None if there was no room for it.
  private let registration: PresenceRegistration?
  private let wake: AlarmLatch
  private let joinsAgain: Bool
  /// Taken only by one caller of `next` at a time, for as long as its look lasts.
  private let steps: Mutex<ConsumerSteps>
  private let watches: [any Cancelling]
  /// Of a worker: tells when others come, leave or die.
  private let presence: ObservationToken?
  /// Of a worker that keeps the order.
  private let obstacles: Obstacles?

  /// - Parameter gate: the role of the only consumer. A worker has it while it begins, so that it
  ///   waits for a consumer that has the queue alone, and that consumer sees its directory.
  convenience init(
    of queue: Queue, _ terms: ConsumerTerms, _ wake: AlarmLatch, _ gate: PresenceRegistration
  ) throws {
    if terms.isWorker {
      defer { gate.close() }
      let registration = try queue.role.enter()
      try self.init(
        of: queue, terms, wake, .worker(registration, gate: gate), registration, gate)
    } else {
      try self.init(of: queue, terms, wake, .alone(gate), gate, gate)
    }
  }

  /// - Parameters:
  ///   - registration: of this process, which ends with the tenure.
  ///   - gate: as above; none without a registration.
  init(
    of queue: Queue, _ terms: ConsumerTerms, _ wake: AlarmLatch, _ role: ConsumerRole,
    _ registration: PresenceRegistration? = nil, _ gate: PresenceRegistration? = nil
  ) throws {
    let deliveries = DeliveryTerms(
      directory: OpenQueue(queue), consumer: terms, released: ReleasedEntries { wake.raise() })
    do {
      let steps = ConsumerSteps(try queue.store.source(for: role, deliveries), deliveries)
      // Stopped between the two steps, this may have replaced its own successor, which then begins
      // again. So must a process that has no right to the role.
      try gate?.confirm()
      place = steps.place
      presence =
        terms.isWorker
        ? try queue.role.observe(on: Blocking.queue()) { _ in wake.raiseForChange() } : nil
      obstacles = terms.keepsOrder ? Obstacles(queue.store.endWatch(), wake.latch) : nil
      watches = place.watch { wake.raise() }
      self.steps = Mutex(steps)
    } catch {
      registration?.close()
      throw error
    }
    self.queue = queue
    self.registration = registration
    self.wake = wake
    joinsAgain = terms.joinsAgain
  }

  /// Takes an entry; nil if there is none now.
  func take() throws -> QueueEntry? {
    try steps.withLock { steps in
      if wake.takeChange() { steps.noteChange() }
      while true {
        if let entry = try steps.next() { return entry }
        if let due = steps.due { wake.raise(at: due) }
        guard let obstacles, try obstacles.watch(steps.obstacles) else { return nil }
      }
    }
  }

  /// Whether an error says that its own directory is gone, or even the container; or, on etcd, its key.
  func isLoss(_ error: any Error) -> Bool {
    let code = (error as? AppGroupError)?.code
    return error as? Errno == .noSuchFile || code == .leaseLost || code == .containerMissing
  }

  /// - Returns: what to say of it.
  func noteLoss() throws -> AppGroupError {
    let remedy = joinsAgain ? "it joins again by itself" : "consume again"
    do {
      try registration?.confirm()
      try place.noteLoss()
      return queue.replaced(remedy: remedy)
    } catch let error as AppGroupError where [.leaseLost, .containerMissing].contains(error.code) {
      return queue.replaced(by: error.holder, remedy: remedy)
    }
  }

  /// - Parameter leave: how the registration ends.
  func end(_ leave: (PresenceRegistration) -> Void) {
    for watch in watches { watch.cancel() }
    presence?.cancel()
    place.end()
    if let registration { leave(registration) }
  }
}
