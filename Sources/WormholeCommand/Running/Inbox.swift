import AppGroup
import Synchronization

/// What came from other threads and has not been dealt with yet, in its order.
final class Inbox<Item: Sendable>: Sendable {
  private let items = Mutex<[Item]>([])
  private let latch = WakeLatch()

  func put(_ item: Item) {
    items.withLock { $0.append(item) }
    latch.raise()
  }

  /// Waits for the next one.
  ///
  /// - Returns: nil when the deadline has passed and there is none.
  func next(until deadline: ContinuousClock.Instant) -> Item? {
    while true {
      let first = items.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      if let first { return first }
      if ContinuousClock.now >= deadline { return nil }
      latch.block(until: deadline)
    }
  }
}
