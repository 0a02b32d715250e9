import WormholeSystem

/// When a command that has ended is started again: the decision of `run`, without a clock or a process.
struct RestartPolicy: Sendable {
  /// After which ends.
  enum Occasion: String, CaseIterable, Sendable {
    case onFailure = "on-failure"
    case always
    case never
  }

  let occasion: Occasion
  /// The starts in a row that may follow a first one.
  let retries: UInt64
  /// The pause before the first of them.
  let backoff: Duration
  /// How many there have been in a row.
  private(set) var restarts: UInt64 = 0

  /// The longest pause, unless the first one is longer.
  static let longestPause: Duration = .seconds(60)
  /// A command that ran for so long has not failed because of what made the one before it fail.
  static let steadyTime: Duration = .seconds(60)

  init(_ occasion: Occasion, retries: UInt64, backoff: Duration) {
    self.occasion = occasion
    self.retries = retries
    self.backoff = backoff
  }

  /// Counts an end of the command.
  ///
  /// - Returns: The pause before the next start; nil if there is none.
  mutating func pause(after end: Termination, of runningTime: Duration) -> Duration? {
    switch occasion {
    case .never: return nil
    case .onFailure: if end == .exited(0) { return nil }
    case .always: break
    }
    if runningTime >= Self.steadyTime { restarts = 0 }
    guard restarts < retries else { return nil }
    // Doubled with each start.
    let pause = backoff * (1 << min(restarts, 20))
    restarts += 1
    return min(pause, max(backoff, Self.longestPause))
  }
}
