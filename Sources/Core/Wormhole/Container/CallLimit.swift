/// The deadline of a caller, for the calls through its container that have no deadline of their own.
/// They end then; one that begins later has a second, and none lasts longer than ten. A call in a
/// directory waits for no answer, so the limit has no effect there.
package struct CallLimit: Sendable {
  /// How long a call may take if neither it nor its caller has a deadline: 10 seconds.
  package static let standardWait: Duration = .seconds(10)
  /// The time for a call whose deadline has passed: it should do only what is possible at once, but
  /// even that takes a round trip.
  private static let leastWait: Duration = .seconds(1)

  private let end: ContinuousClock.Instant?
  /// The first look of the caller, which an engine may make while it opens the container.
  package var first: Prefetch?

  /// - Parameter end: The caller's deadline; nil for a caller without one.
  package init(_ end: ContinuousClock.Instant? = nil) { self.end = end }

  /// Returns the deadline of a call that begins now.
  ///
  /// - Parameter caller: The deadline of its caller, which counts instead of the limit; nil leaves
  ///   the limit.
  package func deadline(
    within caller: ContinuousClock.Instant? = nil
  ) -> ContinuousClock.Instant {
    let standard = ContinuousClock.now + Self.standardWait
    return (caller ?? end).map { min(standard, Self.callDeadline($0)) } ?? standard
  }

  /// Returns the deadline of a call that has one of its own.
  package static func callDeadline(
    _ own: ContinuousClock.Instant
  ) -> ContinuousClock.Instant { max(own, .now + leastWait) }
}

/// The name that a caller looks at first.
package enum Prefetch: Sendable {
  case value(String)
  /// To append to a log.
  case log(String)
  /// To consume a queue; or to send, with the encoded name of the sender.
  case queue(String, isOwn: Bool = false, sender: EncodedName? = nil)
}
