import AppGroup
import Dispatch
import Synchronization

/// Tells of all peers of a container: watches for new names, and how each can be reached.
final class PeerCrowd: Sendable {
  private struct State {
    var names: Watch?
    var peers: [String: Observation] = [:]
    var delivery: ChangeDelivery<Void>?
    /// The peers that were told last; changed on the queue only.
    var last: [Peer]?
    var isEnded = false
  }

  private let container: SharedContainer
  private let reachabilities: ReachabilityWatches
  private let state = Mutex(State())
  private let queue = Blocking.queue()
  private let tell: @Sendable ([Peer]) -> Void

  private init(
    in container: SharedContainer, of reachabilities: ReachabilityWatches,
    _ tell: @escaping @Sendable ([Peer]) -> Void
  ) {
    self.container = container
    self.reachabilities = reachabilities
    self.tell = tell
  }

  static func changes(
    in container: SharedContainer, of reachabilities: ReachabilityWatches
  ) throws -> AsyncStream<[Peer]> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: [Peer].self, bufferingPolicy: .bufferingNewest(1))
    let crowd = PeerCrowd(in: container, of: reachabilities) { continuation.yield($0) }
    continuation.onTermination = { _ in crowd.end() }
    try crowd.begin()
    return stream
  }

  private func begin() throws {
    let delivery = ChangeDelivery<Void>(initial: (), on: queue) { [weak self] _ in
      self?.look()
      return ((), nil)
    }
    state.withLock { $0.delivery = delivery }
    let names = try container.own.watchPresenceNames { [weak self] in self?.signal() }
    state.withLock { $0.names = names }
    try watchPeers()
    delivery.open(signalled: true)
  }

  /// One look at all is enough for all changes before it.
  private func signal() { state.withLock { $0.delivery }?.signal() }

  private func look() {
    do {
      try watchPeers()
      let peers = try PeerSession.peers(in: container)
      note { _ in peers }
      // So that they tell later changes.
      for peer in peers { reachabilities.answered(peer.name, peer.reachability) }
    } catch {
      // For lack of descriptors, perhaps: it may pass.
      queue.asyncAfter(deadline: .now() + .milliseconds(200)) { [weak self] in self?.signal() }
    }
  }

  /// One peer is reached otherwise; one that is new needs a look at all.
  private func note(_ peer: String, _ reachability: PeerReachability) {
    let isKnown = state.withLock { $0.last?.contains { $0.name == peer } == true }
    guard isKnown, reachability != .neverSeen else { return signal() }
    note { $0.map { $0.name == peer ? Peer(name: peer, reachability: reachability) : $0 } }
  }

  private func note(_ change: ([Peer]) -> [Peer]) {
    let news = state.withLock { state -> [Peer]? in
      let now = change(state.last ?? [])
      guard state.last != now, !state.isEnded else { return nil }
      state.last = now
      return now
    }
    if let news { tell(news) }
  }

  // Watch first, and look then.
  private func watchPeers() throws {
    for name in try container.own.presenceNames() {
      guard let peer = PeerNames.peer(ofPresence: name),
        state.withLock({ $0.peers[name] == nil && !$0.isEnded })
      else { continue }
      let observation = try ReachabilityWatch.observe(
        peer, in: container, of: reachabilities, on: queue
      ) { [weak self] reachability in
        self?.note(peer, reachability)
      }
      state.withLock { $0.peers[name] = observation }
    }
  }

  private func end() {
    let old = state.withLock { state in
      defer {
        state = State()
        state.isEnded = true
      }
      return state
    }
    old.delivery?.cancel()
    old.names?.cancel()
    for observation in old.peers.values { observation.cancel() }
  }
}
