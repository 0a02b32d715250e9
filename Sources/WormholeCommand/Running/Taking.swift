/// One thing after the other: until there were enough, the deadline has passed, or the process is told
/// to end.
struct Taking {
  /// Nil for any number.
  let count: Int?
  let interruption: Interruption

  /// - Parameters:
  ///   - next: waits for the next thing; nil when the deadline has passed.
  ///   - handle: how it went; nil for what comes again, and does not count.
  /// - Returns: how what went wrong last did; `.no` when the process was told to end before there were
  ///   as many as were asked for.
  func each<Item: Sendable>(
    _ next: @escaping @Sendable () throws -> Item?, handle: (Item) throws -> ExitStatus?
  ) throws -> ExitStatus {
    var status = ExitStatus.done
    var remaining = count ?? .max
    while remaining > 0 {
      guard let found = try interruption.wait(for: next) else { return count == nil ? status : .no }
      guard let item = found else { return .deadline }
      guard let ended = try handle(item) else { continue }
      if ended != .done { status = ended }
      remaining -= 1
    }
    return status
  }
}

extension ContinuousClock.Instant {
  /// As good as never.
  static var distantFuture: Self { now + .seconds(ValueKind.maximumSeconds) }
}

extension ParsedArguments {
  /// The end of the time that an option gives.
  func deadline(_ name: String = "timeout") -> ContinuousClock.Instant {
    seconds(name).map { .now + $0 } ?? .distantFuture
  }
}
