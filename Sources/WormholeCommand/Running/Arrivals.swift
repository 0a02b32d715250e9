import AppGroup
import Synchronization

/// What observers have heard and the main thread has not dealt with yet.
///
/// Of each name only the latest is kept: a slow reader of our output costs no memory, and catches
/// up with the last message, which is what listening promises.
final class Arrivals<Item: Sendable>: Sendable {
  private let pending = Mutex<[(index: Int, item: Item)]>([])
  private let latch = WakeLatch()

  /// Something has arrived for the name at this place of the command line.
  func put(_ item: Item, at index: Int) {
    pending.withLock { pending in
      pending.removeAll { $0.index == index }
      pending.append((index, item))
    }
    latch.raise()
  }

  /// Waits for the next arrival, in the order in which they came.
  ///
  /// - Returns: nil when the deadline has passed and there is none.
  func next(until deadline: ContinuousClock.Instant?) -> (index: Int, item: Item)? {
    while true {
      let first = pending.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      if let first { return first }
      let now = ContinuousClock.now
      if let deadline, now >= deadline { return nil }
      latch.block(until: deadline ?? now + .seconds(3_600))
    }
  }
}
