import Synchronization
import WormholeSystem

/// The terms of a consumer's deliveries, and what it has until its end: the batches that it has taken,
/// and the entries that were given back to it, until they are due.
package final class DeliveryTerms: Sendable {
  /// An entry that was given back.
  struct Released: Sendable {
    let batch: TakenBatch
    let index: Int
    let due: ContinuousClock.Instant
  }

  private struct Held {
    /// The batches that are not ended.
    var taken: [ObjectIdentifier: TakenBatch] = [:]
    var released = DueHeap<Released>()
  }

  /// The queue, and its directory on this machine.
  let directory: OpenQueue
  let consumer: ConsumerTerms
  let wake: WakeLatch
  /// Whether the consumer takes no more.
  let isFinal = Atomic(false)
  /// Whether the consumer has ended, so that nothing is delivered any more.
  let isOver = Atomic(false)
  /// Nil after the end: each batch refers to these terms.
  private let held = Mutex<Held?>(Held())

  init(_ directory: OpenQueue, _ consumer: ConsumerTerms = .init(), _ wake: WakeLatch = .init()) {
    self.directory = directory
    self.consumer = consumer
    self.wake = wake
  }

  package var queue: PlainQueue { directory.queue }
  package var isWorker: Bool { consumer.isWorker }

  func begin(_ batch: TakenBatch) {
    let isHeld = held.withLock { held in
      held?.taken[ObjectIdentifier(batch)] = batch
      return held != nil
    }
    // Taken by a step that was under way at the end.
    if !isHeld { batch.close() }
  }

  func end(_ batch: TakenBatch) { held.withLock { $0?.taken[ObjectIdentifier(batch)] = nil } }

  /// - Returns: The batches that have not ended.
  func endAll() -> some Collection<TakenBatch> {
    isOver.store(true, ordering: .sequentiallyConsistent)
    return (held.withLock { exchange(&$0, with: nil) }?.taken ?? [:]).values
  }

  func add(_ entry: Released) { held.withLock { _ = $0?.released.insert(entry, due: entry.due) } }

  /// Takes the entry that has been due longest; nil if none is due.
  func takeDue() -> Released? {
    held.withLock { held in
      // Before the call, which looks up its types.
      held?.released.due == nil ? nil : held?.released.takeFirst(dueAt: .now)
    }
  }

  /// When the first entry is due; nil if none was given back.
  var due: ContinuousClock.Instant? { held.withLock { $0?.released.due } }
}
