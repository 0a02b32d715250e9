public import WatchConnectivity
import Wormhole
import WormholeSystem

extension WCSession {
  /// Waits until an observable property is true: `isReachable`, `isPaired`, `isWatchAppInstalled`,
  /// `isComplicationEnabled`, `isCompanionAppInstalled` or `hasContentPending`.
  ///
  /// - Parameters:
  ///   - property: the property.
  ///   - deadline: when to give up; by default 10 seconds from now.
  /// - Throws: `WormholeError.Code.timedOut`.
  public func waitUntil(
    _ property: any KeyPath<WCSession, Bool> & Sendable,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    try await runSuspending { self.wait(until: { $0[keyPath: property] }, deadline) }
  }

  /// Waits until a property is true; see the form with `async`. Blocks the calling thread.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func waitUntil(
    _ property: any KeyPath<WCSession, Bool> & Sendable,
    until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try wait(until: { $0[keyPath: property] }, deadline).run()
  }

  /// Waits until the activation state is the given one.
  ///
  /// - Throws: `WormholeError.Code.timedOut`.
  public func waitUntil(
    _ state: WCSessionActivationState, until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    try await runSuspending { self.wait(until: { $0.activationState == state }, deadline) }
  }

  /// Waits for an activation state; see the `async` form. Blocks the calling thread.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func waitUntil(
    _ state: WCSessionActivationState, until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try wait(until: { $0.activationState == state }, deadline).run()
  }

  /// Looks after each reported change.
  private func wait(
    until holds: @escaping @Sendable (WCSession) -> Bool, _ deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<Void> {
    let (deadline, latch) = (deadline ?? .now + TestScene.patience, WakeLatch())
    func observe<Value>(_ property: KeyPath<WCSession, Value>) -> NSKeyValueObservation {
      self.observe(property) { _, _ in latch.raise() }
    }
    let observations = [
      observe(\.activationState), observe(\.isReachable), observe(\.isPaired),
      observe(\.isWatchAppInstalled), observe(\.isComplicationEnabled),
      observe(\.isCompanionAppInstalled), observe(\.hasContentPending),
    ]
    return StepwiseWait {
      try withExtendedLifetime(observations) {
        if holds(self) { return .done(()) }
        guard ContinuousClock.now < deadline else {
          throw WormholeError(
            .timedOut, "wait for a session",
            reason: "the deadline passed; it is \(self.activationState), and its counterpart is "
              + (self.isReachable ? "reachable" : "not reachable"),
            remedy: self.delegate == nil
              ? "give it a delegate before activate(): without one it is not activated" : nil)
        }
        return .wait(for: latch, until: deadline)
      }
    }
  }
}
