import AppGroup

/// Starts a peer exactly once, however many ask at once.
enum Launcher {
  /// Whether a peer would be started for an occasion.
  static func isLaunchable(
    _ peer: String, for occasion: PeerLaunch.Occasions, in container: SharedContainer
  ) throws -> Bool { preconditionFailure("unbuilt") }

  /// Starts a peer that is not active, unless another process does already, and waits until it is
  /// active.
  ///
  /// - Returns: false when it registered nothing for this occasion: nothing was done.
  /// - Throws: `PeerError`: `notLaunched`, with why: its program cannot be run, it ended before it was
  ///   active, its budget is used up, or the registration can be written by others; `timedOut`.
  static func launch(
    _ peer: String, for occasion: PeerLaunch.Occasions, in container: SharedContainer,
    until deadline: ContinuousClock.Instant
  ) throws -> Bool { preconditionFailure("unbuilt") }

  /// The same without waiting until it is active: for queued work. Errors go to the one who asks.
  static func begin(
    _ peer: String, for occasion: PeerLaunch.Occasions, in container: SharedContainer
  ) throws -> Bool { preconditionFailure("unbuilt") }
}
