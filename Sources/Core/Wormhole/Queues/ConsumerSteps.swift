import Synchronization
import WormholePropertyLists
import WormholeSystem

/// The steps of a consumer, none of which waits: due entries that were given back, then those that
/// its source takes.
struct ConsumerSteps {
  private let terms: DeliveryTerms
  var source: any ConsumerSource
  private var hasLooked = false
  /// Whether the last delivered entry had been given back before.
  private var wasReleased = false
  private var current: (batch: TakenBatch, next: Int)?

  init(_ source: any ConsumerSource, _ terms: DeliveryTerms) {
    self.source = source
    self.terms = terms
  }

  /// True once.
  var isFirstLook: Bool {
    mutating get {
      defer { hasLooked = true }
      return !hasLooked
    }
  }

  /// When an entry may be deliverable without an event: one that was given back or delayed is due,
  /// or another consumer may be stopped; nil if neither can happen.
  var due: ContinuousClock.Instant? { [terms.due, source.due].compactMap(\.self).min() }

  /// Returns the next entry to deliver; nil if nothing waits. Returned entries that are due come
  /// before waiting ones, but not twice in a row as long as something waits.
  ///
  /// - Throws: `leaseLost` if this consumer was replaced.
  mutating func next(until deadline: ContinuousClock.Instant?) throws -> QueueEntry? {
    if !wasReleased, let entry = try nextReleased(until: deadline) { return entry }
    while true {
      if let entry = try nextOfCurrent(until: deadline) {
        wasReleased = false
        return entry
      }
      switch try source.take(until: deadline) {
      case .batch(let batch): current = (batch, 0)
      case .again: continue
      case .nothing: return try nextReleased(until: deadline)
      }
    }
  }

  private mutating func nextReleased(
    until deadline: ContinuousClock.Instant?
  ) throws -> QueueEntry? {
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

  private mutating func nextOfCurrent(
    until deadline: ContinuousClock.Instant?
  ) throws -> QueueEntry? {
    while let (batch, index) = current, index < batch.entries.count {
      var entry: QueueEntry?
      if batch.isSettled(index) {
        entry = nil
      } else if let due = batch.due(index) {
        terms.add(.init(batch: batch, index: index, due: due))
      } else {
        entry = try deliver(batch, index, until: deadline)
      }
      current = (batch, index + 1)
      if let entry { return entry }
    }
    current = nil
    return nil
  }

  /// - Returns: nil if it has ended instead.
  private func deliver(
    _ batch: TakenBatch, _ index: Int, until deadline: ContinuousClock.Instant?
  ) throws -> QueueEntry? {
    let entry = batch.entries[index]
    guard let payload = entry.payload, entry.expiry?.hasPassed != true else {
      try batch.settle(
        index, as: entry.payload == nil ? entry.withdrawal : .expired, until: deadline)
      return nil
    }
    if let id = payload.attachmentID { try batch.store.takeAttachment(id) }
    guard let deliveries = try batch.deliver(index, until: deadline) else { return nil }
    let isAgain = deliveries > 1
    let queue = terms.queue
    Diagnostics.note(
      isAgain ? .redelivery : .delivery, at: isAgain ? .info : nil,
      "an entry of \"\(queue.name)\" is delivered for the \(deliveries). time",
      in: queue.container.root.path,
      fields: [
        "queue": queue.name, "entry": "\(QueueEntryID(batch: batch.name, index: index))",
        "deliveries": "\(deliveries)",
      ])
    return QueueEntry(payload: payload, key: entry.key, deliveries: deliveries, batch, index)
  }
}

/// The terms of a consumer's deliveries, and the entries that were given back to it, until they are
/// due.
package final class DeliveryTerms: Sendable {
  /// An entry that was given back.
  struct Released: Sendable {
    let batch: TakenBatch
    let index: Int
    let due: ContinuousClock.Instant
  }

  /// The queue, and its directory on this machine.
  let directory: OpenQueue
  let consumer: ConsumerTerms
  /// Wakes the consumer.
  let wake: AlarmLatch
  private let released = Mutex<[Released]>([])

  init(_ directory: OpenQueue, _ consumer: ConsumerTerms = .init(), _ wake: AlarmLatch = .init()) {
    self.directory = directory
    self.consumer = consumer
    self.wake = wake
  }

  package var queue: Queue { directory.queue }
  package var keepsOrder: Bool { consumer.keepsOrder }

  func add(_ entry: Released) { released.withLock { $0.append(entry) } }

  /// Takes the entry that has been due longest; nil if none is due.
  func takeDue() -> Released? {
    let now = ContinuousClock.now
    return released.withLock { entries in
      let due = entries.indices.filter { entries[$0].due <= now }
      guard let first = due.min(by: { entries[$0].due < entries[$1].due }) else { return nil }
      return entries.remove(at: first)
    }
  }

  /// When the first entry is due; nil if none was given back.
  var due: ContinuousClock.Instant? { released.withLock { $0.map(\.due).min() } }
}
