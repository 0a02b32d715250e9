import Dispatch
public import Wormhole
import WormholePropertyLists
import WormholeSystem

/// Starts a peer that is not active. At most one of its processes is ever active, because activity
/// is an exclusive presence.
///
/// A process that wants to start it notes that, in one step, as the last start in the peer's
/// `LaunchState`, which also counts it. Then it starts the program, and notes its process. All
/// others see a start under way, and wait until the peer is active or that start is over.
///
/// A start is over when its process, first the starting one and then the program, has ended, was
/// active meanwhile, or is stopped, because a suspended process must block no other; or when there
/// is no program after ten seconds. Then another process starts the program once more. If the first
/// was only late, there are two: the second finds the name in use, and ends at once (`variable`). A
/// process that waits finds the peer active in any case. The cost is one count in the budget.
package enum Launcher {
  /// The environment variable that holds the peer's name in a program that was started for it. Its
  /// session of that name does not wait for another process to leave: see `PeerSession.activate`.
  static let variable = "WORMHOLE_LAUNCH"

  /// Returns the end of the wait for a process that wants to be active as a peer: now, if it was
  /// started for that peer.
  package static func roleDeadline(
    _ deadline: ContinuousClock.Instant?, for peer: String
  ) -> ContinuousClock.Instant? {
    PeerNames.areSame(Program.environment(variable), peer) ? .now : deadline
  }

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
      } catch let error as WormholeError
        where [.notLaunched, .damaged].contains(error.code) && error.isBetweenPeers
      {
        // A caller that tries to start it gets the reason.
        return false
      }
    }
  }

  /// Starts a peer that is not active, unless another process is already starting it, and waits
  /// until it is active. Blocks the calling thread.
  ///
  /// - Parameters:
  ///   - asksAgents: whether the agent of another machine may start it.
  ///   - deadline: when to give up; one in the past means "only if it is active now". A program
  ///     that was started keeps running. Nil, for queued work, returns as soon as the program's
  ///     process exists, which survives the end of this process.
  /// - Returns: false if the peer has neither a registration for this occasion nor an agent, and
  ///   nothing was done.
  /// - Throws: `WormholeError`: `notLaunched`, with the reason: its program cannot be run, it ended
  ///   before it was active, its budget is used up, or others can write the registration;
  ///   `timedOut`, its `holder` the process that is not active yet.
  package static func launch(
    _ peer: String, for occasion: PeerLaunch.Occasions, in container: SharedContainer,
    asksAgents: Bool = true, until deadline: ContinuousClock.Instant?
  ) throws(WormholeError) -> Bool {
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
          of: agent, for: peer, in: container, action, until: deadline)
        return true
      }
      let attempt = LaunchAttempt(
        launch, peer, container: container, action: action, until: deadline)
      // Watch first, then look.
      let watching = try attempt.watchPresence()
      defer { watching?.cancel() }
      try attempt.run()
      return true
    }
  }
}

extension PeerLaunch {
  /// Starts peers here when processes on other machines need them: for a container on etcd.
  ///
  /// A registration is kept on its machine, and followed there by each process that needs the peer.
  /// A process on another machine asks the agent, which follows the registration for it, with its
  /// occasions and its budget. What it runs comes from this machine's registration only.
  ///
  /// ```swift
  /// try PeerLaunch.Registry(in: container).set(PeerLaunch(program: "/usr/local/bin/phone"), for: "phone")
  /// let agent = try PeerLaunch.Agent(for: ["phone"], in: container) { print($0) }
  /// // ... as long as the machine serves the peer
  /// agent.close()
  /// ```
  public final class Agent: Sendable {
    private let parts: [Part]

    private struct Part {
      let registration: PresenceRegistration
      let observation: ObservationToken
    }

    /// The longest wait for a started program to be active.
    private static let patience: Duration = .seconds(30)

    /// Begins to start peers; if work already waits for one, it is started at once.
    ///
    /// - Parameters:
    ///   - peers: The names of registered peers. A registration that is changed later is followed, but
    ///     its occasions count from the next agent on.
    ///   - container: A container on etcd.
    ///   - onFailure: Gets each failure, on a queue where it may block. The process that needs the
    ///     peer also gets it.
    /// - Throws: `WormholeError.Code.notLaunched` for a peer that is not registered here, and in a
    ///   directory, where each process starts peers itself; or an error of the container.
    /// - Complexity: on etcd two requests for each peer, and one for each start.
    public init(
      for peers: [String], in container: SharedContainer,
      onFailure: @escaping @Sendable (WormholeError) -> Void
    ) throws {
      var parts: [Part] = []
      for peer in peers {
        let action = "start \"\(peer)\" for other machines"
        parts.append(
          try betweenPeers(action, peer) {
            try Self.begin(peer, container, action, onFailure)
          })
      }
      self.parts = parts
    }

    deinit { close() }

    /// Ends it; programs that it started keep running.
    public func close() {
      for part in parts {
        part.observation.cancel()
        part.registration.close()
      }
    }

    private static func begin(
      _ peer: String, _ container: SharedContainer, _ action: String,
      _ onFailure: @escaping @Sendable (WormholeError) -> Void
    ) throws -> Part {
      @Sendable func refusal(_ reason: String, _ remedy: String) -> WormholeError {
        WormholeError(.notLaunched, action, peer: peer, reason: reason, remedy: remedy)
      }
      guard !container.isLocal else {
        throw refusal(
          "its container is a directory, in which each process starts a registered peer itself",
          "register it, which is enough")
      }
      guard let launch = try PeerLaunch.trusted(of: peer, in: container, action) else {
        throw refusal("it is not registered on this machine", "register it here")
      }
      @Sendable func start(for occasion: Occasions, _ wish: LaunchWish?) {
        do throws(WormholeError) {
          let isRegistered = try Launcher.launch(
            peer, for: occasion, in: container, asksAgents: false,
            until: occasion == .request ? .now + Self.patience : nil)
          guard isRegistered else {
            throw refusal(
              "its registration was removed, or is for other occasions now", "register it again")
          }
        } catch {
          onFailure(error)
          // If this fails, the process that waits gets an error at its deadline.
          try? wish?.note(error.reason, of: peer, in: container)
        }
      }
      let observation = try container.own.value(PeerNames.wish(peer))
        .observe(on: DispatchQueue(label: "wormhole.launcher")) { snapshot in
          // Another program may have written the value; then no process waits for an answer.
          guard let wish = try? LaunchWish(snapshot.propertyList(limits: PeerLaunch.limits)),
            wish.failure == nil
          else { return }
          start(for: wish.occasion, wish)
        }
      let registration = try container.own.presence(PeerNames.agent(peer)).enter(
        content: ["occasions": .array(launch.occasions.propertyList)])
      let waits = try [PeerNames.messages(peer), PeerNames.files(peer)].contains {
        let queue = container.own.queue($0)
        // A process that is receiving already gets them.
        return try queue.hasEntries() && queue.role.members().isEmpty
      }
      if waits, launch.occasions.include(.queuedWork) {
        Blocking.queue().async { start(for: .queuedWork, nil) }
      }
      return Part(registration: registration, observation: observation)
    }
  }
}

/// The wish for a start on another machine: a value that the peer's agent observes there.
///
/// ```
/// presence  peer/<peer>/agent   the agent, with `occasions`
/// value     peer/wish/<peer>    `id` and `occasion` of the last wish; `failure`, if it failed
/// ```
///
/// Nothing in it is run: the agent starts what is registered on its own machine.
struct LaunchWish: Sendable {
  let id: String
  let occasion: PeerLaunch.Occasions
  let failure: String?

  init(for occasion: PeerLaunch.Occasions) {
    (id, self.occasion, failure) = (Nonce.next(), occasion, nil)
  }

  /// - Returns: nil for a value of another form.
  init?(_ value: PropertyListValue?) {
    guard let id = value?["id"]?.stringValue,
      let occasion = value?["occasion"].map({ PeerLaunch.Occasions(propertyList: [$0]) })
    else { return nil }
    (self.id, self.occasion) = (id, occasion)
    failure = value?["failure"]?.stringValue
  }

  private var propertyList: PropertyListValue {
    ["id": .string(id), "occasion": occasion.propertyList.first ?? .string("")]
  }

  /// The agent that would start a peer for an occasion, by a look at a presence on etcd; nil if
  /// there is none.
  static func agent(
    for peer: String, _ occasion: PeerLaunch.Occasions, in container: SharedContainer
  ) throws -> PresenceMember? {
    guard !container.isLocal else { return nil }
    return try container.own.presence(PeerNames.agent(peer)).members().first {
      let occasions = $0.content?["occasions"]?.arrayValue ?? []
      return PeerLaunch.Occasions(propertyList: occasions).include(occasion)
    }
  }

  /// Notes that the wish could not be fulfilled, unless another one has followed.
  func note(_ failure: String, of peer: String, in container: SharedContainer) throws {
    try container.own.value(PeerNames.wish(peer)).update { [id] content in
      guard content?["id"]?.stringValue == id else { return }
      content?["failure"] = .string(failure)
    }
  }

  private static func clause(_ agent: PresenceMember) -> String {
    "the agent, \(agent.process)\(agent.host.map { " on \($0)" } ?? ""),"
  }

  /// Writes the wish, and waits until the peer is active; without a deadline it does not wait for that.
  func make(
    of agent: PresenceMember, for peer: String, in container: SharedContainer, _ action: String,
    until deadline: ContinuousClock.Instant?
  ) throws {
    let (latch, value) = (WakeLatch(), container.own.value(PeerNames.wish(peer)))
    guard let deadline else { return try value.replace(with: propertyList) }
    let presence = container.own.presence(PeerNames.presence(peer))
    // Watch first, then write.
    let observations = [
      try presence.observe(on: DispatchQueue(label: "wormhole.launcher")) { _ in latch.raise() },
      try value.observe(on: DispatchQueue(label: "wormhole.launcher")) { _ in latch.raise() },
    ]
    defer { for observation in observations { observation.cancel() } }
    try value.replace(with: propertyList, until: deadline)
    try StepwiseWait<Void> {
      switch try presence.status() {
      case .running, .suspended, .unknown: return .done(())
      case .gone, .neverSeen: break
      }
      // The wish has replaced an earlier failure, so this one belongs to it or to a later wish.
      if let failure = try LaunchWish(value.read())?.failure {
        throw WormholeError(
          .notLaunched, action, peer: peer, reason: "\(Self.clause(agent)) reports that \(failure)")
      }
      guard ContinuousClock.now < deadline else {
        throw WormholeError(
          .timedOut, action, peer: peer, reason: "\(Self.clause(agent)) has not started it yet",
          remedy: "wait longer, or look at what that agent reports", holder: agent.holder)
      }
      return .wait(for: latch, until: deadline)
    }.run()
  }
}
