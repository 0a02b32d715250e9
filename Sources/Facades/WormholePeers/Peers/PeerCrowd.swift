import Dispatch
import Synchronization
import Wormhole
import WormholeSystem

/// Reports all peers of a container: watches for new names, and how each can be reached. After any
/// change it looks at all peers, once for all changes before it.
final class PeerCrowd: Sendable {
  private struct State {
    var names: (any Cancelling)?
    var peers: [String: ObservationToken] = [:]
    var delivery: ChangeDelivery<[Peer]?>?
    var isEnded = false
  }

  private let container: SharedContainer
  private let reachabilities: ReachabilityWatches
  private let state = Mutex(State())
  private let queue = Blocking.queue()

  private init(in container: SharedContainer, of reachabilities: ReachabilityWatches) {
    self.container = container
    self.reachabilities = reachabilities
  }

  static func changes(
    in container: SharedContainer, of reachabilities: ReachabilityWatches
  ) throws -> AsyncStream<[Peer]> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: [Peer].self, bufferingPolicy: .bufferingNewest(1))
    let crowd = PeerCrowd(in: container, of: reachabilities)
    continuation.onTermination = { _ in crowd.end() }
    try crowd.begin { continuation.yield($0) }
    return stream
  }

  private func begin(_ report: @escaping @Sendable ([Peer]) -> Void) throws {
    let delivery = ChangeDelivery<[Peer]?>(initial: nil, on: queue) { [weak self] last in
      guard let now = self?.look(), now != last else { return (last, nil) }
      return (now, { report(now) })
    }
    state.withLock { $0.delivery = delivery }
    let names = try container.own.watchPresenceNames { [weak self] in self?.signal() }
    state.withLock { $0.names = names }
    try watchPeers()
    delivery.open(signalled: true)
  }

  private func signal() { state.withLock { $0.delivery }?.signal() }

  private func look() -> [Peer]? {
    do {
      try watchPeers()
      let peers = try PeerSession.peers(in: container)
      // So that the watches report later changes.
      for peer in peers { reachabilities.answered(peer.name, peer.reachability) }
      return peers
    } catch {
      // Perhaps for lack of descriptors, which may pass.
      queue.asyncAfter(deadline: .now() + .milliseconds(200)) { [weak self] in self?.signal() }
      return nil
    }
  }

  // Watch first, then look.
  private func watchPeers() throws {
    for name in try container.own.presenceNames() {
      guard let peer = PeerNames.peer(ofPresence: name),
        state.withLock({ $0.peers[name] == nil && !$0.isEnded })
      else { continue }
      let observation = try ReachabilityWatch.observe(
        peer, in: container, of: reachabilities, on: queue
      ) { [weak self] _ in self?.signal() }
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
