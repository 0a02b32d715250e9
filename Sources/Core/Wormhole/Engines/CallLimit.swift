/// The deadline of a caller, for the engine calls below it that have no deadline of their own: they
/// end then, or a moment later, and not after the standard wait. In a directory no call waits for
/// an answer, so it has no effect there.
package enum CallLimit {
  /// How long a call may take if its caller has named no deadline: 10 seconds.
  package static let standardWait: Duration = .seconds(10)
  /// The time for a call whose deadline has passed: it should do only what is possible at once, but
  /// even that takes a round trip.
  private static let leastWait: Duration = .seconds(1)

  @TaskLocal private static var limit: ContinuousClock.Instant?

  /// Runs a call of a caller that waits until a deadline; nil for a caller without a deadline.
  package static func within<Result>(
    _ deadline: ContinuousClock.Instant?, _ body: () throws -> Result
  ) rethrows -> Result {
    guard let deadline else { return try body() }
    return try $limit.withValue(deadline, operation: body)
  }

  /// Runs a call of a caller that waits for something that may take any time.
  package static func lifted<Result>(_ body: () throws -> Result) rethrows -> Result {
    try $limit.withValue(nil, operation: body)
  }

  /// The deadline of a call that has none of its own.
  package static var deadline: ContinuousClock.Instant {
    let standard = ContinuousClock.now + standardWait
    return limit.map { min(standard, callDeadline($0)) } ?? standard
  }

  /// Returns the deadline of a call that is made for a caller with a deadline.
  package static func callDeadline(
    _ deadline: ContinuousClock.Instant
  ) -> ContinuousClock.Instant { max(deadline, .now + leastWait) }
}
