import Dispatch
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// The wish for a start on another machine: a value, which the agent of the peer observes there.
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

  /// The agent that would start a peer for an occasion; nil where there is none.
  ///
  /// - Complexity: one look at a presence, on etcd only.
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

  /// Writes the wish; waits until the peer is active, or only until the wish is written.
  func make(
    of agent: PresenceMember, for peer: String, in container: SharedContainer, _ action: String,
    isForActivity: Bool, until deadline: ContinuousClock.Instant
  ) throws {
    let (latch, value) = (WakeLatch(), container.own.value(PeerNames.wish(peer)))
    let presence = container.own.presence(PeerNames.presence(peer))
    // Watch first, then write.
    let observations =
      try isForActivity
      ? [
        presence.observe(on: Blocking.queue()) { _ in latch.raise() },
        value.observe(on: Blocking.queue()) { _ in latch.raise() },
      ] : []
    defer { for observation in observations { observation.cancel() } }
    try value.replace(with: propertyList, until: deadline)
    guard isForActivity else { return }
    try StepwiseWait<Void> {
      switch try presence.status() {
      case .running, .suspended, .unknown: return .done(())
      case .gone, .neverSeen: break
      }
      // The wish has replaced an earlier failure, so this one belongs to it or to a later wish.
      if let failure = try LaunchWish(value.read())?.failure {
        throw PeerError(
          .notLaunched, action, peer: peer, reason: "\(Self.clause(agent)) reports that \(failure)")
      }
      guard ContinuousClock.now < deadline else {
        throw PeerError(
          .timedOut, action, peer: peer, reason: "\(Self.clause(agent)) has not started it yet",
          remedy: "wait longer, or look at what that agent reports", holder: agent.holder)
      }
      return .wait(for: latch, until: deadline)
    }.run()
  }
}
