import WormholeSystem

extension WakeLatch {
  /// Suspends the task until the latch is raised or the deadline has passed.
  package func suspend(until deadline: ContinuousClock.Instant?) async {
    await withCheckedContinuation { continuation in
      if !wake(until: deadline, { continuation.resume() }) { continuation.resume() }
    }
  }
}
