import Dispatch
import Synchronization
import Wormhole
import WormholeSystem

/// Reports to an observer what peers offer: watches for new names, each presence, and the next
/// expiry. After any of these events it looks at all offers, once for all changes before it.
final class OfferWatch: Cancelling {
  private struct State {
    var names: (any Cancelling)?
    var peers: [String: ObservationToken] = [:]
    var isEnded = false
  }

  /// After a look that failed.
  private static let retry: Duration = .milliseconds(200)

  private let container: SharedContainer
  private let name: String
  private let state = Mutex(State())
  /// Holds this object weakly; nil only before it is made.
  private let delivery = Mutex<ChangeDelivery<[PeerOffer]?>?>(nil)
  private let queue = Blocking.queue()

  private init(in container: SharedContainer, besides name: String) {
    self.container = container
    self.name = name
  }

  /// - Parameter name: the peer whose own offers are not reported.
  static func observe(
    in container: SharedContainer, besides name: String, on queue: DispatchQueue,
    _ handler: @escaping @Sendable ([PeerOffer]) -> Void
  ) throws -> ObservationToken {
    let watch = OfferWatch(in: container, besides: name)
    let delivery = ChangeDelivery<[PeerOffer]?>(initial: nil, on: watch.queue) {
      [weak watch] last in
      guard let now = watch?.look(), now != last else { return (last, nil) }
      let call: @Sendable () -> Void = { [weak watch] in
        queue.async { [weak watch] in
          guard watch?.state.withLock(\.isEnded) == false else { return }
          handler(now)
        }
      }
      return (now, call)
    }
    watch.delivery.withLock { $0 = delivery }
    let names = try container.own.watchPresenceNames { [weak watch] in watch?.signal() }
    watch.state.withLock { $0.names = names }
    try watch.watchPeers()
    delivery.open(signalled: true)
    return ObservationToken(delivery: watch)
  }

  private func signal() { delivery.withLock { $0 }?.signal() }

  private func signal(after pause: Duration) {
    Blocking.timers.asyncAfter(deadline: .now() + pause.dispatchInterval) { [weak self] in
      self?.signal()
    }
  }

  private func look() -> [PeerOffer]? {
    do {
      try watchPeers()
      let offers = try PeerOffer.all(in: container, besides: name)
      if let next = offers.filter({ !$0.expiry.isNever }).map(\.expiry.remaining).min() {
        // A timer may come a little early.
        signal(after: next + .milliseconds(1))
      }
      return offers
    } catch {
      // Perhaps for lack of descriptors, which may pass.
      signal(after: Self.retry)
      return nil
    }
  }

  // Watch first, then look.
  private func watchPeers() throws {
    for presence in try container.own.presenceNames() {
      guard PeerNames.peer(ofActivity: presence) != nil,
        state.withLock({ $0.peers[presence] == nil && !$0.isEnded })
      else { continue }
      let observation = try container.own.presence(presence).observe(on: queue) {
        [weak self] _ in self?.signal()
      }
      let isSuperfluous = state.withLock { state in
        guard !state.isEnded else { return true }
        state.peers[presence] = observation
        return false
      }
      if isSuperfluous { observation.cancel() }
    }
  }

  func cancel() {
    let old = state.withLock { state in
      defer {
        state = State()
        state.isEnded = true
      }
      return state
    }
    delivery.withLock { $0 }?.cancel()
    old.names?.cancel()
    for observation in old.peers.values { observation.cancel() }
  }
}
