import WormholeSystem

/// Retries until a condition holds.
///
/// - Returns: Whether it held before the deadline.
package func poll(
  until deadline: ContinuousClock.Instant, every pause: Duration = .milliseconds(5),
  _ condition: () throws -> Bool
) rethrows -> Bool {
  while try !condition() {
    guard ContinuousClock.now < deadline else { return false }
    pauseThread(pause)
  }
  return true
}
