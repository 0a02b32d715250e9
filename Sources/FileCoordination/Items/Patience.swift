import AppGroup
import Synchronization

/// For how long an access waits, and what ends the wait before.
struct Patience: Sendable {
  let deadline: ContinuousClock.Instant
  let cancellation: Cancellation

  /// How often a waiter looks again whatever it is told: a process may be stopped, a call cancelled.
  static let interval: Duration = .milliseconds(50)

  var isOver: Bool { ContinuousClock.now >= deadline }

  func check(_ action: String, path: String) throws {
    guard cancellation.isCancelled else { return }
    throw FileCoordinationError(
      .cancelled, action, path: path, reason: "the coordinator was told to cancel it")
  }

  /// When to look again for somebody who is woken before if there is something to see.
  func deadline(after wait: Duration) -> ContinuousClock.Instant { min(deadline, .now + wait) }

  /// When to look again.
  var nextLook: ContinuousClock.Instant { min(deadline, .now + Self.interval) }
}

/// Says that a call is to be given up.
final class Cancellation: Sendable {
  private let flag = Atomic(false)
  private let latches = Mutex<[WakeLatch]>([])

  var isCancelled: Bool { flag.load(ordering: .acquiring) }

  /// Raises a latch when it comes to that.
  func wakes(_ latch: WakeLatch) { latches.withLock { $0.append(latch) } }

  func cancel() {
    flag.store(true, ordering: .releasing)
    for latch in latches.withLock({ $0 }) { latch.raise() }
  }
}
