package import Wormhole
import WormholeSystem

/// Starts a peer exactly once, however many ask at once.
///
/// **Which process starts it.** Each process that wants to makes a place for the start
/// (`StartPlace`), and notes it as the last start in the peer's `LaunchState`, which succeeds only
/// if that is still the start that was found to be over. The note also counts the start. Then the
/// process starts the program, and notes the program's process. All other processes see a start
/// under way, and wait until the peer is active or that start is over.
///
/// **When a start is over.**
///
/// | the last start | is over when |
/// |---|---|
/// | has a process | that has ended, or was active meanwhile (and is not any more); or has been stopped for a moment, because a suspended process must block no other |
/// | has none | its launcher is dead, has been stopped for a moment, or needs longer than ten seconds, **and** its place could be removed, so that nothing will ever be started there |
///
/// Where the place cannot be removed, a process was started: it is found by its output file or by
/// its environment, and noted. So a launcher may be killed or stopped between any two steps: no
/// second program is started, and in the end one is. The cost may be a count in the budget.
package enum Launcher {
  /// Whether a peer would be started for an occasion: it is registered for it, no other user can
  /// have changed the registration, its program exists, and its budget for today is not used up; or
  /// there is an agent for it on another machine.
  package static func isLaunchable(
    _ peer: String, for occasion: PeerLaunch.Occasions, in container: SharedContainer
  ) throws -> Bool {
    let action = "look whether \"\(peer)\" can be started"
    return try betweenPeers(action, peer) {
      do {
        guard let launch = try PeerLaunch.trusted(of: peer, in: container, action),
          launch.occasions.include(occasion), launch.obstacle == nil
        else { return try LaunchWish.agent(for: peer, occasion, in: container) != nil }
        guard let budget = launch.budgetPerDay else { return true }
        return try LaunchBook(peer, container).read().count(at: .now()) < budget
      } catch let error as PeerError where [.notLaunched, .damaged].contains(error.code) {
        // A caller that tries to start it gets the reason.
        return false
      }
    }
  }

  /// Starts a peer that is not active, unless another process is already starting it, and waits
  /// until it is active. Blocks the calling thread.
  ///
  /// - Parameter deadline: when to give up; one in the past means "only if it is active now". A
  ///   program that was started keeps running.
  /// - Returns: false when the peer has no registration for this occasion, nor an agent, and nothing was
  ///   done.
  /// - Throws: `PeerError`: `notLaunched`, with the reason: its program cannot be run, it ended
  ///   before it was active, its budget is used up, or others can write the registration;
  ///   `timedOut`, its `holder` the process that is not active yet.
  package static func launch(
    _ peer: String, for occasion: PeerLaunch.Occasions, in container: SharedContainer,
    until deadline: ContinuousClock.Instant
  ) throws -> Bool {
    try start(peer, for: occasion, in: container, isForActivity: true, until: deadline)
  }

  /// Starts a peer without waiting until it is active, for queued work. The caller gets the errors.
  ///
  /// Returns as soon as the program's process exists, which survives the end of this process.
  package static func begin(
    _ peer: String, for occasion: PeerLaunch.Occasions, in container: SharedContainer
  ) throws -> Bool {
    try start(
      peer, for: occasion, in: container, isForActivity: false, until: .now + Value.standardWait)
  }

  /// Starts a peer on this machine only; waits until it is active if the occasion is a request.
  static func launchHere(
    _ peer: String, for occasion: PeerLaunch.Occasions, in container: SharedContainer,
    until deadline: ContinuousClock.Instant
  ) throws(PeerError) -> Bool {
    try start(
      peer, for: occasion, in: container, isForActivity: occasion == .request, asksAgents: false,
      until: deadline)
  }

  private static func start(
    _ peer: String, for occasion: PeerLaunch.Occasions, in container: SharedContainer,
    isForActivity: Bool, asksAgents: Bool = true, until deadline: ContinuousClock.Instant
  ) throws(PeerError) -> Bool {
    let action = "start \"\(peer)\""
    return try betweenPeers(action, peer) {
      try PeerNames.check(peer)
      guard let launch = try PeerLaunch.trusted(of: peer, in: container, action),
        launch.occasions.include(occasion)
      else {
        guard asksAgents,
          let agent = try LaunchWish.agent(for: peer, occasion, in: container)
        else { return false }
        try LaunchWish(for: occasion).make(
          of: agent, for: peer, in: container, action, isForActivity: isForActivity,
          until: deadline)
        return true
      }
      let attempt = LaunchAttempt(
        launch, peer, container: container, action: action, isForActivity: isForActivity,
        until: deadline)
      // Watch first, then look.
      let watching = try isForActivity ? attempt.watchPresence() : nil
      defer { watching?.cancel() }
      try attempt.run()
      return true
    }
  }
}
