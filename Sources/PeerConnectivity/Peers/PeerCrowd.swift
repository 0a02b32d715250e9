import AppGroup
import Dispatch
import Synchronization

/// Tells of all peers of a container: watches for new names, and who comes and goes under each.
final class PeerCrowd: Sendable {
  private struct State {
    var names: NameObservation?
    var peers: [String: Observation] = [:]
    var last: [Peer]?
    var isEnded = false
  }

  private let container: SharedContainer
  private let continuation: AsyncStream<[Peer]>.Continuation
  private let state = Mutex(State())
  private let queue = Blocking.queue()

  private init(_ container: SharedContainer, _ continuation: AsyncStream<[Peer]>.Continuation) {
    self.container = container
    self.continuation = continuation
  }

  static func changes(in container: SharedContainer) throws -> AsyncStream<[Peer]> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: [Peer].self, bufferingPolicy: .bufferingNewest(1))
    let crowd = PeerCrowd(container, continuation)
    continuation.onTermination = { _ in crowd.end() }
    try crowd.begin()
    return stream
  }

  private func begin() throws {
    let names = try container.own.observePresenceNames { [weak self] in self?.lookSoon() }
    state.withLock { $0.names = names }
    try watchPeers()
    lookSoon()
  }

  private func lookSoon() { queue.async { [weak self] in self?.look() } }

  private func look() {
    do {
      try watchPeers()
      let peers = try PeerSession.peers(in: container)
      let isNew = state.withLock { state in
        defer { state.last = peers }
        return state.last != peers
      }
      if isNew { continuation.yield(peers) }
    } catch {
      // For want of descriptors, perhaps: it may pass.
      queue.asyncAfter(deadline: .now() + .milliseconds(200)) { [weak self] in self?.look() }
    }
  }

  // Watch first, and look then.
  private func watchPeers() throws {
    for name in try container.own.presenceNames() where PeerNames.peer(ofPresence: name) != nil {
      guard state.withLock({ $0.peers[name] == nil && !$0.isEnded }) else { continue }
      let observation = try container.own.presence(name).observe(on: queue) { [weak self] _ in
        self?.look()
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
    old.names?.cancel()
    for observation in old.peers.values { observation.cancel() }
  }
}
