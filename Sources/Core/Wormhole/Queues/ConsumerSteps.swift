import WormholePropertyLists

/// The steps of a consumer, none of which waits: due entries that were given back, then those that
/// its source takes.
struct ConsumerSteps {
  private let terms: DeliveryTerms
  private var source: any ConsumerSource
  /// Whether the last delivered entry had been given back before.
  private var wasReleased = false
  private var current: (batch: TakenBatch, next: Int)?

  private var queue: Queue { terms.directory.queue }

  init(_ source: any ConsumerSource, _ terms: DeliveryTerms) {
    self.source = source
    self.terms = terms
  }

  var place: any ConsumerPlace { source.place }

  /// Batches of other workers that this one waits for, because it keeps the order of senders.
  var obstacles: Set<EntryFile> { source.obstacles }

  /// Another consumer came, left or died.
  mutating func noteChange() { source.noteChange() }

  /// When an entry may be deliverable without an event: one that was given back or delayed is due,
  /// or another consumer may be stopped; nil if neither can happen.
  var due: ContinuousClock.Instant? { [terms.released.due, source.due].compactMap(\.self).min() }

  /// Returns the next entry to deliver; nil if nothing waits. Returned entries that are due come
  /// before waiting ones, but not twice in a row as long as something waits.
  ///
  /// - Parameter deadline: As in `ConsumerSource.take`.
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
    while let released = terms.released.takeDue() {
      // Ended in the meantime by the consumer that had it first.
      guard !released.batch.isSettled(released.index) else { continue }
      do {
        guard let entry = try deliver(released.batch, released.index, until: deadline) else {
          continue
        }
        wasReleased = true
        return entry
      } catch {
        terms.released.add(released)
        throw error
      }
    }
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

  private mutating func nextOfCurrent(
    until deadline: ContinuousClock.Instant?
  ) throws -> QueueEntry? {
    while let (batch, index) = current {
      guard index < batch.entries.count else { break }
      guard !batch.isSettled(index) else {
        current = (batch, index + 1)
        continue
      }
      if let due = batch.due(index) {
        terms.released.add(.init(batch: batch, index: index, due: due))
        current = (batch, index + 1)
        continue
      }
      let entry = try deliver(batch, index, until: deadline)
      current = (batch, index + 1)
      if let entry { return entry }
    }
    current = nil
    return nil
  }
}
