import Synchronization

/// An outcome that one thread provides and another one waits for.
package final class Awaited<Outcome: Sendable>: Sendable {
  private let outcome = Mutex<Outcome?>(nil)
  private let latch = WakeLatch()

  package init() {}

  package var isSettled: Bool { outcome.withLock { $0 != nil } }

  package func settle(_ outcome: Outcome) {
    self.outcome.withLock { $0 = outcome }
    latch.raise()
  }

  /// Blocks the calling thread until there is an outcome.
  package func wait() -> Outcome {
    while true {
      if let outcome = outcome.withLock({ $0 }) { return outcome }
      latch.block(until: nil)
    }
  }

  /// Blocks the calling thread until there is an outcome.
  ///
  /// - Parameter block: Blocks until the latch is raised or the deadline has passed; it may work
  ///   meanwhile.
  /// - Returns: nil if the deadline passed.
  package func wait(
    until deadline: ContinuousClock.Instant,
    blocking block: (WakeLatch, ContinuousClock.Instant) -> Void = { $0.block(until: $1) }
  ) -> Outcome? {
    while true {
      if let outcome = outcome.withLock({ $0 }) { return outcome }
      guard ContinuousClock.now < deadline else { return nil }
      block(latch, deadline)
    }
  }
}
