import Dispatch
import Synchronization
package import Wormhole
import WormholeSystem

/// The sign of life of this process in a container on etcd: a lease with the keys that end with the
/// process.
///
/// It is kept alive in time (`renewal`), and revoked when the last user releases it or the
/// process exits. A process that was stopped, or could not reach etcd, for longer than the lifetime
/// has lost it with all of its keys, and learns that with its next call: it is **fenced** by
/// conditions that name these keys.
package final class EtcdSession: Sendable {
  package let lease: Int64
  package let lifetime: Duration
  /// The history in which it was made; its holders' knowledge counts in no other.
  package let history: Int
  private let client: EtcdClient
  private let processID = Program.processID
  private let state: Mutex<State>

  private struct State {
    /// When the last answered keep-alive was sent, on a clock that runs while the machine sleeps.
    var kept: ContinuousClock.Instant
    var hasEnded = false
    var nextHandler = 0
    var handlers: [Int: @Sendable () -> Void] = [:]
  }

  private static let endsAtExit: Void = Program.atExit { EtcdSession.revokeAll() }
  private static let live = Mutex<[Int64: Weak<EtcdSession>]>([:])
  /// How long an exit of the process waits for etcd.
  static let exitWait: Duration = .milliseconds(250)

  init(
    _ client: EtcdClient, lifetime: Duration, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) {
    let sent = ContinuousClock.now
    history = client.history
    lease = try client.grantLease(lifetime: lifetime, until: deadline)
    self.client = client
    self.lifetime = lifetime
    state = Mutex(State(kept: sent))
    Self.live.withLock { $0[lease] = Weak(object: self) }
    _ = Self.endsAtExit
    keepAliveLater(after: renewal)
  }

  deinit {
    let (client, lease, lifetime) = (client, lease, lifetime)
    Self.live.withLock { $0[lease] = nil }
    guard isAlive, Program.processID == processID else { return }
    Blocking.queue().async {
      // Its users have removed their keys; without this the lease ends by itself a little later.
      _ = try? client.revokeLease(lease, until: .now + lifetime)
    }
  }

  /// The pause between two signs of life. The rest of the lifetime is for repetitions on a busy
  /// machine, so a short lifetime is renewed more often.
  private var renewal: Duration { lifetime < .seconds(8) ? lifetime / 3 : lifetime / 2 }

  // MARK: Certainty

  /// Whether it is not known to have ended.
  package var isAlive: Bool { history == client.history && !state.withLock(\.hasEnded) }

  /// Whether it cannot have ended yet: etcd heard of this process less than a lifetime ago.
  package var isCertain: Bool { ContinuousClock.now < end(after: lifetime) }

  /// Until when its holders may continue without a request, both counted from the last sign of life
  /// that etcd has answered. They move on with each one, and have passed once it has ended.
  ///
  /// ```
  /// sent              stop        deadline     may end
  /// 0 ─────────────── 8/10 ─────── 9/10 ─────── lifetime
  /// ```
  ///
  /// At `stop` a holder should stop: a keep-alive and its repetitions were not answered by then. By
  /// `deadline` it must have stopped; the rest is for a machine too busy to stop it at once.
  package var limits: HoldLimits {
    HoldLimits(stop: end(after: lifetime * 8 / 10), deadline: end(after: lifetime * 9 / 10))
  }

  private func end(after time: Duration) -> ContinuousClock.Instant {
    let isAlive = isAlive
    return state.withLock { isAlive ? $0.kept + time : $0.kept - lifetime }
  }

  /// Asks etcd, unless it is certain.
  ///
  /// - Throws: `EtcdError`: `.leaseGone` if the session has ended, `.unreachable`.
  package func confirm(until deadline: ContinuousClock.Instant) throws(EtcdError) {
    if isCertain { return }
    guard isAlive else { throw EtcdError(.leaseGone, "the session has ended") }
    try keepAlive(until: deadline)
  }

  private func keepAlive(until deadline: ContinuousClock.Instant) throws(EtcdError) {
    let sent = ContinuousClock.now
    do throws(EtcdError) {
      try client.keepLeaseAlive(lease, until: deadline)
      state.withLock { $0.kept = max($0.kept, sent) }
    } catch {
      if error.code == .leaseGone { end() }
      throw error
    }
  }

  private func keepAliveLater(after pause: Duration) {
    Timers.after(pause) { [weak self] in
      guard let self, isAlive else { return }
      Blocking.urgently { [weak self] in self?.keepAliveNow() }
    }
  }

  private func keepAliveNow() {
    guard Program.processID == processID else { return }
    let sent = ContinuousClock.now
    for eighth in 1...Self.mostBeside { keepAliveBeside(sent, after: lifetime / 8 * eighth) }
    do throws(EtcdError) {
      try keepAlive(until: sent + lifetime / 2)
      keepAliveLater(after: renewal)
    } catch {
      // The calls of its users report that etcd cannot be reached.
      if isAlive { keepAliveLater(after: lifetime / 12) }
    }
  }

  /// How many more keep-alives are sent beside one that is not answered.
  private static let mostBeside = 2

  /// Sends another keep-alive, on another connection, if one is not answered: etcd may be well, and
  /// only its connection dead.
  private func keepAliveBeside(_ sent: ContinuousClock.Instant, after pause: Duration) {
    Timers.after(pause) { [weak self] in
      guard let self, isAlive, state.withLock({ $0.kept < sent }) else { return }
      Blocking.urgently { [weak self] in
        guard let self else { return }
        // The first one reports a failure.
        try? keepAlive(until: sent + lifetime / 2)
      }
    }
  }

  // MARK: Its end

  /// Calls a closure when the session is found to have ended; at once if it has.
  ///
  /// - Parameter handler: Called on a thread where it may block.
  /// - Returns: Keeps the handler as long as it lasts.
  package func onEnd(_ handler: @escaping @Sendable () -> Void) -> EndHandler {
    let number = state.withLock { state -> Int? in
      guard !state.hasEnded else { return nil }
      state.nextHandler += 1
      state.handlers[state.nextHandler] = handler
      return state.nextHandler
    }
    if number == nil { Blocking.urgently(handler) }
    return EndHandler(session: self, number: number)
  }

  /// A handler for the end of a session, as long as it lasts. It keeps the session, too.
  package final class EndHandler: Sendable {
    package let session: EtcdSession
    private let number: Int?

    fileprivate init(session: EtcdSession, number: Int?) {
      self.session = session
      self.number = number
    }

    deinit {
      if let number { session.state.withLock { _ = $0.handlers.removeValue(forKey: number) } }
    }
  }

  /// Notes that the session has ended, as a transaction has shown.
  package func end() {
    Self.call(takeHandlers())
  }

  /// Ends it because the history was replaced: its holders have to learn that their changes since
  /// then are lost. The new history may have the lease and its keys, which would block new ones.
  ///
  /// - Parameter deadline: How long the caller waits for etcd.
  func endWithHistory(until deadline: ContinuousClock.Instant) {
    guard !state.withLock(\.hasEnded), Program.processID == processID else { return }
    let handlers = takeHandlers()
    // If this fails, the lease expires by itself a little later.
    _ = try? client.revokeLease(lease, until: deadline)
    Self.call(handlers)
  }

  /// A process may have thousands of registrations.
  private static func call(_ handlers: [@Sendable () -> Void]) {
    let rest = Mutex(handlers)
    for _ in 0..<min(handlers.count, mostThreads) {
      Blocking.urgently {
        while let handler = rest.withLock({ $0.popLast() }) { handler() }
      }
    }
  }

  private static let mostThreads = 16

  private func takeHandlers() -> [@Sendable () -> Void] {
    state.withLock { state in
      state.hasEnded = true
      return Array(exchange(&state.handlers, with: [:]).values)
    }
  }

  fileprivate static func revokeAll() {
    let sessions = live.withLock { $0.values.compactMap(\.object) }
    let deadline = ContinuousClock.now + exitWait
    for session in sessions where session.isAlive && session.processID == Program.processID {
      // Otherwise a registration would enter again while the process is exiting.
      _ = session.takeHandlers()
      // A session that is not revoked in time ends by itself.
      _ = try? session.client.revokeLease(session.lease, until: deadline)
    }
  }

  // MARK: The end of a part

  /// How long the caller of `insist` waits before the work continues in the background.
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
      Blocking.queue().after(Self.retry) { [self] in insist(body) }
    }
  }
}
