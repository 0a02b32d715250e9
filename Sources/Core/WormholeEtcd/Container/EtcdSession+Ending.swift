import Dispatch
import Wormhole
import WormholeSystem

// Ending what hangs on a session before it ends itself.
extension EtcdSession {
  /// How long the caller waits before it is done in the background.
  private static let endWait: Duration = .seconds(2)
  /// How often it is tried again there.
  private static let retry: Duration = .seconds(1)

  /// Does what ends a part of the session; in the background, if etcd does not answer soon. At the
  /// latest the end of the session does it, which is kept until then.
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
