internal import WatchConnectivity

/// The schedule for repeated activation of a session: a pause that doubles, from 0.1 s up to a
/// minute; no repetition if it cannot help.
struct ActivationRetry {
  private static let first = Duration.milliseconds(100)
  private static let longest = Duration.seconds(60)

  private var next = Self.first

  /// Returns the pause before the next attempt, or nil for no further attempt.
  mutating func pause(after error: (any Error)?) -> Duration? {
    if let error = error as? WCError, Self.isPermanent(error.code) { return nil }
    defer { next = min(next * 2, Self.longest) }
    return next
  }

  mutating func succeeded() { next = Self.first }

  private static func isPermanent(_ code: WCError.Code) -> Bool {
    switch code {
    case .sessionNotSupported, .sessionMissingDelegate: true
    default: false
    }
  }
}
