import Dispatch
import Synchronization
import WormholePropertyLists
import WormholeSystem

/// How a consumer takes part in its queue, each time that it joins.
package struct ConsumerTerms: Sendable {
  /// The number of attempts after which an entry has failed, at least 1; nil for any number.
  let attempts: Int?
  /// Whether it joins again after it was replaced; otherwise `next` throws `leaseLost`.
  let joinsAgain: Bool
  let isWorker: Bool

  package init(
    _ attempts: Int? = nil, joinsAgain: Bool = true, isWorker: Bool = false
  ) {
    self.attempts = attempts.map { max($0, 1) }
    self.joinsAgain = joinsAgain
    self.isWorker = isWorker
  }
}

/// An entry that a consumer has taken, before the type of its content counts: code for any type looks up
/// its types in each call.
struct Delivery: Sendable {
  let payload: PropertyListValue
  let key: String?
  let attempt: Int
  let isRedelivery: Bool
  let batch: TakenBatch
  let index: Int
}

/// One epoch of a consumer: its time from joining to its end, or to its loss. Thread-safe.
final class ConsumerEpoch: Sendable {
  let place: any ConsumerMembership
  private let deliveries: DeliveryTerms
  private let registration: PresenceRegistration?
  /// Taken only by one caller of `next` at a time, for as long as its look lasts.
  private let steps: Mutex<ConsumerSteps>
  /// The queue's watches, which wake a caller of `next`. Nil before they begin, empty after.
  private let watches = Mutex<[any Cancelling]?>(nil)

  /// Returns the wait of a process that becomes a consumer, for the consumers in its way.
  static func entry(
    _ queue: PlainQueue, _ terms: ConsumerTerms, _ wake: WakeLatch,
    until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<ConsumerEpoch> {
    let deliveries = DeliveryTerms(OpenQueue(queue), terms, wake)
    let joining = queue.store.joining(deliveries, until: deadline)
    return StepwiseWait {
      try queue.attempt(terms.isWorker ? "work for" : "consume") {
        try joining.step().then { .done(ConsumerEpoch($0, deliveries)) }
      }
    }
  }

  init(_ membership: QueueMembership, _ deliveries: DeliveryTerms) {
    self.deliveries = deliveries
    registration = membership.registration
    place = membership.place
    steps = Mutex(ConsumerSteps(membership.source, deliveries))
  }

  private var queue: PlainQueue { deliveries.queue }
  private var terms: ConsumerTerms { deliveries.consumer }
  private var wake: WakeLatch { deliveries.wake }

  /// Takes an entry; nil if there is none now.
  ///
  /// - Parameter limit: The end of a look that finds much but no entry.
  /// - Returns: Also whether the look ended at its limit.
  func take(
    until deadline: ContinuousClock.Instant?, _ limit: ContinuousClock.Instant
  ) throws -> (delivery: Delivery?, isSpent: Bool) {
    try steps.withLock { steps in
      if steps.isFirstLook, let entry = try steps.next(until: deadline, limit) {
        return (entry, false)
      }
      try watch()
      if let entry = try steps.next(until: deadline, limit) { return (entry, false) }
      if let due = steps.due { wake.raise(at: due) }
      return (nil, steps.isSpent)
    }
  }

  /// Begins to wake the callers of `next`: with the second look, so that taking one waiting entry
  /// costs no watch.
  private func watch() throws {
    guard watches.withLock({ $0 == nil }) else { return }
    try registration?.watch()
    let begun = place.watch { [wake] in wake.raise() }
    let isKept = watches.withLock { watches in
      // Excludes: watches that begin after the end.
      guard watches == nil else { return false }
      watches = begun
      return true
    }
    if !isKept { for watch in begun { watch.cancel() } }
  }

  var nextRetry: ContinuousClock.Instant? { deliveries.due }

  /// Whether it has delivered an entry.
  var hasDelivered: Bool { steps.withLock(\.hasDelivered) }

  var inheritable: Int32? { registration?.inheritable }

  func takesNoMore() { deliveries.isFinal.store(true, ordering: .relaxed) }

  func noteLoss(until deadline: ContinuousClock.Instant?) throws -> WormholeError {
    let remedy = terms.joinsAgain ? "it joins again by itself" : "consume again"
    do {
      try registration?.confirm(until: deadline)
      try place.noteLoss()
      return queue.replaced(remedy: remedy)
    } catch let error as WormholeError where error.isLossOfConsumer {
      return queue.replaced(by: error.holder, remedy: remedy)
    }
  }

  /// - Parameter asDeath: whether the registration ends as if this process had died.
  func end(asDeath: Bool = false) {
    cancelWatches()
    deliveries.isOver.store(true, ordering: .sequentiallyConsistent)
    if !asDeath { closeSource() }
    for batch in deliveries.endAll() where !asDeath { batch.close() }
    place.end(registration, asDeath ? .death : .closed)
  }

  /// Excludes: a caller of `next` that takes something after the end, which would count as attempted. Its
  /// step ends soon, unless the file system or etcd does not answer.
  private func closeSource() {
    let deadline = ContinuousClock.now + TakenBatch.closingTime
    while steps.withLockIfAvailable({ $0.source.close() }) == nil, .now < deadline {
      pauseThread(.milliseconds(1))
    }
  }

  func endLater() {
    cancelWatches()
    _ = deliveries.endAll()
    place.end(registration, .replaced)
  }

  private func cancelWatches() {
    for watch in watches.withLock({ exchange(&$0, with: []) }) ?? [] { watch.cancel() }
  }
}

extension Error {
  /// Whether it means that a consumer's own directory, or the container, is gone; on etcd its key.
  var isLossOfConsumer: Bool {
    let code = (self as? WormholeError)?.code
    return self as? Errno == .noSuchFile || code == .leaseLost || code == .containerMissing
  }
}

extension Queue {
  package func replaced(
    by holder: LeaseHolder? = nil, remedy: String = "go on with the next entry"
  ) -> WormholeError {
    WormholeError(
      .leaseLost, "consume \"\(name)\"", path: path,
      reason: (holder.map { "\($0)," } ?? "another consumer")
        + " has replaced this one, because it was stopped, or the queue was removed; what was not "
        + "acknowledged is delivered to it again",
      remedy: remedy, holder: holder)
  }
}

/// The steps of a consumer, none of which waits: due entries that were given back, then those that
/// its source takes.
struct ConsumerSteps {
  private let terms: DeliveryTerms
  var source: any ConsumerSource
  private var hasLooked = false
  private(set) var hasDelivered = false
  /// Whether the last delivered entry had been given back before.
  private var wasReleased = false
  private var current: (batch: TakenBatch, next: Int)?
  /// The steps of this look that have found no entry.
  private var steps = 0
  /// Whether the last look ended at its limit.
  private(set) var isSpent = false
  /// When an entry may become ready without an event, as the source has said.
  private var sourceDue: ContinuousClock.Instant?
  /// A look may always make this many: on a busy machine a single one may outlast any time limit.
  static let leastSteps = 100

  init(_ source: any ConsumerSource, _ terms: DeliveryTerms) {
    self.source = source
    self.terms = terms
  }

  /// True once.
  var isFirstLook: Bool { mutating get { !exchange(&hasLooked, with: true) } }

  /// When an entry may be deliverable without an event: one that was given back or delayed is due,
  /// or another consumer may be stopped; nil if neither can happen.
  var due: ContinuousClock.Instant? { [terms.due, sourceDue].compactMap(\.self).min() }

  /// Returns the next entry to deliver; nil if nothing waits. Returned entries that are due come
  /// before waiting ones, but not twice in a row as long as something waits.
  ///
  /// - Throws: `leaseLost` if this consumer was replaced.
  mutating func next(
    until deadline: ContinuousClock.Instant?, _ limit: ContinuousClock.Instant
  ) throws -> Delivery? {
    (steps, isSpent) = (0, false)
    if !wasReleased, let entry = try nextReleased(until: deadline) { return entry }
    while !terms.isOver.load(ordering: .sequentiallyConsistent) {
      if let entry = try nextOfCurrent(until: deadline, limit) {
        wasReleased = false
        return entry
      }
      if current != nil { return nil }
      switch try source.take(until: deadline) {
      case .batch(let batch): current = (batch, 0)
      case .again: if endsLook(limit) { return nil }
      case .nothing(let due):
        sourceDue = due
        return try nextReleased(until: deadline)
      }
    }
    return nil
  }

  /// Whether a look ends after one more step without an entry.
  private mutating func endsLook(_ limit: ContinuousClock.Instant) -> Bool {
    steps += 1
    isSpent = steps > Self.leastSteps && limit <= .now
    return isSpent
  }

  private mutating func nextReleased(
    until deadline: ContinuousClock.Instant?
  ) throws -> Delivery? {
    while let released = terms.takeDue() {
      // Ended in the meantime by the consumer that had it first.
      guard !released.batch.isSettled(released.index) else { continue }
      do {
        guard let entry = try deliver(released.batch, released.index, until: deadline) else {
          continue
        }
        wasReleased = true
        return entry
      } catch {
        terms.add(released)
        throw error
      }
    }
    return nil
  }

  /// - Parameter limit: after it, the rest of the batch waits for the next call.
  private mutating func nextOfCurrent(
    until deadline: ContinuousClock.Instant?, _ limit: ContinuousClock.Instant
  ) throws -> Delivery? {
    while let (batch, index) = current, index < batch.entries.count {
      var entry: Delivery?
      if batch.isSettled(index) {
        entry = nil
      } else if let due = batch.due(index) {
        terms.add(.init(batch: batch, index: index, due: due))
      } else {
        entry = try deliver(batch, index, until: deadline)
      }
      current = (batch, index + 1)
      if let entry { return entry }
      if endsLook(limit) { return nil }
    }
    current = nil
    return nil
  }

  /// - Returns: nil if it has ended instead.
  private mutating func deliver(
    _ batch: TakenBatch, _ index: Int, until deadline: ContinuousClock.Instant?
  ) throws -> Delivery? {
    let entry = batch.entries[index]
    guard let payload = entry.payload, entry.expiry?.hasPassed != true else {
      try batch.settle(
        index, as: entry.payload == nil ? entry.withdrawal : .expired, until: deadline)
      return nil
    }
    if let id = payload.attachmentID { try batch.store.takeAttachment(id) }
    guard let (attempt, deliveries) = try batch.deliver(index, until: deadline) else { return nil }
    hasDelivered = true
    let isAgain = deliveries > 1
    let queue = terms.queue
    Diagnostics.note(
      isAgain ? .redelivery : .delivery, at: isAgain ? .info : nil,
      isAgain
        ? "an entry of \"\(queue.name)\" is delivered again, for attempt \(attempt)"
        : "an entry of \"\(queue.name)\" is delivered",
      in: queue.container.root.path,
      fields: [
        "queue": queue.name, "entry": "\(QueueEntryID(batch: batch.name, index: index))",
        "attempt": "\(attempt)",
      ])
    return Delivery(
      payload: payload, key: entry.key, attempt: attempt, isRedelivery: isAgain, batch: batch,
      index: index)
  }
}
