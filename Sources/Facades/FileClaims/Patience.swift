import AppGroup
import Synchronization

/// How long an access waits, and its cancellation.
package struct Patience: Sendable {
  package let deadline: ContinuousClock.Instant
  package let cancellation: Cancellation

  package init(deadline: ContinuousClock.Instant, cancellation: Cancellation) {
    self.deadline = deadline
    self.cancellation = cancellation
  }

  /// How often a waiter looks again without an event: a process may be stopped, a call cancelled.
  package static let interval: Duration = .milliseconds(50)

  package var isOver: Bool { ContinuousClock.now >= deadline }

  package func check(_ action: String, path: String) throws {
    guard cancellation.isCancelled else { return }
    throw FileCoordinationError(
      .cancelled, action, path: path, reason: "the coordinator was told to cancel it")
  }

  /// When to look again at the latest, for a waiter that an event wakes before.
  package func deadline(after wait: Duration) -> ContinuousClock.Instant {
    min(deadline, .now + wait)
  }

  /// When to look again.
  package var nextLook: ContinuousClock.Instant { min(deadline, .now + Self.interval) }
}

/// Says that a call is to be given up.
package final class Cancellation: Sendable {
  private let flag = Atomic(false)
  private let latches = Mutex<[WakeLatch]>([])

  package init() {}

  package var isCancelled: Bool { flag.load(ordering: .acquiring) }

  /// Raises a latch when it comes to that.
  func wakes(_ latch: WakeLatch) { latches.withLock { $0.append(latch) } }

  package func cancel() {
    flag.store(true, ordering: .releasing)
    for latch in latches.withLock({ $0 }) { latch.raise() }
  }
}
