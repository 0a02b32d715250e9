import Synchronization
public import WatchConnectivity
import Wormhole
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
    try await runSuspending { PropertyWait(self, { $0[keyPath: property] }, until: deadline) }
  }

  /// Waits until a property is true; see the form with `async`. Blocks the calling thread.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func waitUntil(
    _ property: any KeyPath<WCSession, Bool> & Sendable,
    until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try PropertyWait(self, { $0[keyPath: property] }, until: deadline).run()
  }

  /// Waits until the activation state is the given one.
  ///
  /// - Throws: `TestingError`: `timedOut`.
  public func waitUntil(
    _ state: WCSessionActivationState, until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    try await runSuspending { PropertyWait(self, { $0.activationState == state }, until: deadline) }
  }

  /// Waits until the activation state is the given one; see the form with `async`. Blocks the calling thread.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func waitUntil(
    _ state: WCSessionActivationState, until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try PropertyWait(self, { $0.activationState == state }, until: deadline).run()
  }
}

/// One caller's wait for a condition of a session: a look after each reported change.
private final class PropertyWait: Waiting {
  private let session: WCSession
  private let holds: @Sendable (WCSession) -> Bool
  private let deadline: ContinuousClock.Instant
  private let latch: WakeLatch
  private let observations: [NSKeyValueObservation]

  init(
    _ session: WCSession, _ holds: @escaping @Sendable (WCSession) -> Bool,
    until deadline: ContinuousClock.Instant?
  ) {
    let latch = WakeLatch()
    self.session = session
    self.holds = holds
    self.latch = latch
    self.deadline = deadline ?? .now + TestScene.patience
    func observe<Value>(_ property: KeyPath<WCSession, Value>) -> NSKeyValueObservation {
      session.observe(property) { _, _ in latch.raise() }
    }
    observations = [
      observe(\.activationState), observe(\.isReachable), observe(\.isPaired),
      observe(\.isWatchAppInstalled), observe(\.isComplicationEnabled),
      observe(\.isCompanionAppInstalled), observe(\.hasContentPending),
    ]
  }

  func step() throws -> WaitingStep<Void> {
    if holds(session) { return .done(()) }
    guard ContinuousClock.now < deadline else {
      throw TestingError(
        .timedOut, "wait for a session",
        reason: "the deadline passed; it is \(session.activationState), and "
          + (session.isReachable
            ? "its counterpart is reachable" : "its counterpart is not reachable"))
    }
    return .wait(for: latch, until: deadline)
  }
}
