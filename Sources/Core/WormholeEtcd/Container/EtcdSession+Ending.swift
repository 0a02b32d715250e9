import Dispatch
import Wormhole
import WormholeSystem

// Ending parts of a session before the session itself.
extension EtcdSession {
  /// How long the caller waits before the work continues in the background.
  private static let endWait: Duration = .seconds(2)
  /// The pause before each retry there.
  private static let retry: Duration = .seconds(1)

  /// Runs the end of a part of the session; in the background, if etcd does not answer soon. The
  /// session is kept until then, and its end has the same effect at the latest.
  package func insist(
    _ body: @escaping @Sendable (ContinuousClock.Instant) throws -> Void
  ) {
    do {
      try body(.now + Self.endWait)
    } catch {
      guard (error as? EtcdError)?.code != .leaseGone, isAlive else { return }
      Blocking.queue().asyncAfter(deadline: .now() + Self.retry.dispatchInterval) { [self] in
        insist(body)
      }
    }
  }
}
