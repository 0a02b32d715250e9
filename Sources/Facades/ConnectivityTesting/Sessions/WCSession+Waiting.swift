public import WatchConnectivity
import WormholeSystem

extension WCSession {
  /// Waits until a property that can be observed is true: `isReachable`, `isPaired`, `isWatchAppInstalled`,
  /// `isComplicationEnabled`, `isCompanionAppInstalled` or `hasContentPending`.
  ///
  /// - Parameters:
  ///   - property: the property.
  ///   - deadline: when to give up; by default 10 seconds from now.
  /// - Throws: `TestingError`: `timedOut`.
  public func waitUntil(
    _ property: any KeyPath<WCSession, Bool> & Sendable,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    try await Blocking.wait { try self.waitUntil(property, until: deadline) }
  }

  /// Waits until a property is true; see the form with `async`. Blocks the calling thread.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func waitUntil(
    _ property: any KeyPath<WCSession, Bool> & Sendable,
    until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try wait(until: { $0[keyPath: property] }, deadline)
  }

  /// Waits until the activation state is the given one.
  ///
  /// - Throws: `TestingError`: `timedOut`.
  public func waitUntil(
    _ state: WCSessionActivationState, until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    try await Blocking.wait { try self.waitUntil(state, until: deadline) }
  }

  /// Waits until the activation state is the given one; see the form with `async`. Blocks the calling thread.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func waitUntil(
    _ state: WCSessionActivationState, until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try wait(until: { $0.activationState == state }, deadline)
  }

  /// Looks after each reported change.
  private func wait(
    until holds: (WCSession) -> Bool, _ deadline: ContinuousClock.Instant?
  ) throws {
    let deadline = deadline ?? .now + TestScene.patience
    let latch = WakeLatch()
    func observe<Value>(_ property: KeyPath<WCSession, Value>) -> NSKeyValueObservation {
      self.observe(property) { _, _ in latch.raise() }
    }
    let observations = [
      observe(\.activationState), observe(\.isReachable), observe(\.isPaired),
      observe(\.isWatchAppInstalled), observe(\.isComplicationEnabled),
      observe(\.isCompanionAppInstalled), observe(\.hasContentPending),
    ]
    defer { for observation in observations { observation.invalidate() } }
    while !holds(self) {
      guard ContinuousClock.now < deadline else {
        throw TestingError(
          .timedOut, "wait for a session",
          reason: "the deadline passed; it is \(activationState), and its counterpart is "
            + (isReachable ? "reachable" : "not reachable"))
      }
      latch.block(until: deadline)
    }
  }
}
