import AppGroup
import Synchronization

/// What a presenter was told and has not been printed yet.
///
/// Whoever reads our output slowly delays nobody else, for the presenter has answered already; and
/// costs no more memory than this: beyond it all that waits is told as one `changed`.
final class PresenterBacklog: Sendable {
  private let capacity: Int
  private let pending = Mutex<[PresenterEvent]>([])
  private let latch = WakeLatch()

  init(capacity: Int = 10_000) {
    self.capacity = capacity
  }

  func add(_ event: PresenterEvent) {
    pending.withLock { pending in
      if pending.count >= capacity { pending = [.changed] }
      pending.append(event)
    }
    latch.raise()
  }

  /// Waits for what comes next.
  ///
  /// - Returns: everything that waits, in its order; nothing when the deadline has passed.
  func take(until deadline: ContinuousClock.Instant?) -> [PresenterEvent] {
    while true {
      let events = pending.withLock { pending in
        defer { pending = [] }
        return pending
      }
      let now = ContinuousClock.now
      if !events.isEmpty || deadline.map({ now >= $0 }) ?? false { return events }
      latch.block(until: deadline ?? now + .seconds(3_600))
    }
  }
}
