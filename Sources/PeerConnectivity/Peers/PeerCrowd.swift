import AppGroup
import Dispatch
import Synchronization

/// Tells of all peers of a container: watches for new names, and how each can be reached.
final class PeerCrowd: Sendable {
  private struct State {
    var names: NameObservation?
    var peers: [String: Observation] = [:]
    var delivery: Delivery<[Peer]?>?
    var isEnded = false
  }

  private let container: SharedContainer
  private let reachabilities: ReachabilityWatches
  private let state = Mutex(State())
  private let queue = Blocking.queue()

  private init(_ container: SharedContainer, _ reachabilities: ReachabilityWatches) {
    self.container = container
    self.reachabilities = reachabilities
  }

  static func changes(
    in container: SharedContainer, _ reachabilities: ReachabilityWatches
  ) throws -> AsyncStream<[Peer]> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: [Peer].self, bufferingPolicy: .bufferingNewest(1))
    let crowd = PeerCrowd(container, reachabilities)
    continuation.onTermination = { _ in crowd.end() }
    try crowd.begin { continuation.yield($0) }
    return stream
  }

  private func begin(_ tell: @escaping @Sendable ([Peer]) -> Void) throws {
    let delivery = Delivery<[Peer]?>(initial: nil, on: queue) { [weak self] last in
      guard let self, let peers = look() else { return (last, nil) }
      let call: @Sendable () -> Void = { tell(peers) }
      return (peers, peers == last ? nil : call)
    }
    state.withLock { $0.delivery = delivery }
    let names = try container.own.observePresenceNames { [weak self] in self?.signal() }
    state.withLock { $0.names = names }
    try watchPeers()
    delivery.open(signalled: true)
  }

  /// A look is enough for all that changed before it.
  private func signal() { state.withLock { $0.delivery }?.signal() }

  private func look() -> [Peer]? {
    do {
      try watchPeers()
      return try PeerSession.peers(in: container)
    } catch {
      // For want of descriptors, perhaps: it may pass.
      queue.asyncAfter(deadline: .now() + .milliseconds(200)) { [weak self] in self?.signal() }
      return nil
    }
  }

  // Watch first, and look then.
  private func watchPeers() throws {
    for name in try container.own.presenceNames() {
      guard let peer = PeerNames.peer(ofPresence: name),
        state.withLock({ $0.peers[name] == nil && !$0.isEnded })
      else { continue }
      let observation = try ReachabilityWatch.observe(
        peer, in: container, reachabilities, on: queue
      ) { [weak self] _ in
        self?.signal()
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
