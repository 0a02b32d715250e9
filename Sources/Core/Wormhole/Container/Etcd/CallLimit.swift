/// The deadline of a caller, for the calls to etcd below it that are given none: they end then, or a
/// moment later, and not after the standard wait. In a directory no call waits for an answer, so it
/// changes nothing there.
package enum CallLimit {
  @TaskLocal private static var limit: ContinuousClock.Instant?

  /// Runs a call of a caller that waits until a deadline; nil for one without.
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

  /// The deadline of a call that is given none.
  package static var deadline: ContinuousClock.Instant {
    let standard = ContinuousClock.now + EtcdContainer.standardWait
    return limit.map { min(standard, EtcdContainer.callDeadline($0)) } ?? standard
  }
}
