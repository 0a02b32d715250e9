import AppGroup
import Dispatch
import Synchronization

/// Tells one observer how a peer can be reached, and knows what it was told last.
///
/// Who comes, leaves or dies is an event of the peer's presence. That a process is stopped, or goes on,
/// is no event of the kernel: as long as somebody is active under the name, one file of /proc is read
/// once a second. As long as nobody is, nothing is read. What anybody of this session finds meanwhile,
/// because it asks or because the peer has sent something, is told at once: so the observer was told
/// last whatever an answer said last.
final class ReachabilityWatch: Cancellable {
  /// How long a stop may go unnoticed while nobody asks.
  static let pace: Duration = .seconds(1)

  private struct State {
    var told: PeerReachability?
    /// What an answer said, and the observer is to be told.
    var answered: PeerReachability?
    /// Who was present at the last event.
    var members: [PresenceMember] = []
    var hasTimer = false
    var isCancelled = false
  }

  let peer: String
  private let container: SharedContainer
  private let state = Mutex(State())
  /// Holds this object weakly; nil only before it is made.
  private let delivery = Mutex<Delivery<Void>?>(nil)

  private init(_ peer: String, in container: SharedContainer) {
    self.peer = peer
    self.container = container
  }

  /// Tells the handler how the peer can be reached, now and whenever that changes.
  ///
  /// - Parameter watches: those of the session whose answers are to be told, too.
  static func observe(
    _ peer: String, in container: SharedContainer, _ watches: ReachabilityWatches,
    on queue: DispatchQueue, _ handler: @escaping @Sendable (PeerReachability) -> Void
  ) throws -> Observation {
    let watch = ReachabilityWatch(peer, in: container)
    let delivery = Delivery<Void>(initial: (), on: queue) { [weak watch] _ in
      guard let news = watch?.news() else { return ((), nil) }
      let call: @Sendable () -> Void = { handler(news) }
      return ((), call)
    }
    watch.delivery.withLock { $0 = delivery }
    let presence = container.own.presence(PeerNames.presence(peer))
    let events = try presence.observe(startsWithCurrent: true, on: queue) { [weak watch] members in
      watch?.state.withLock { $0.members = members }
      watch?.signal()
    }
    watches.add(watch)
    delivery.open()
    return Observation(events, delivery: watch)
  }

  // MARK: What may be news

  /// Something may be another: looks soon.
  func signal() { delivery.withLock { $0 }?.signal() }

  /// Somebody was answered this.
  func answered(_ reachability: PeerReachability) {
    let isNews = state.withLock { state in
      guard state.told != nil, state.told != reachability else { return false }
      state.answered = reachability
      return true
    }
    if isNews { signal() }
  }

  /// The peer has sent something.
  func heard() {
    if state.withLock({ $0.told?.isReachable == false }) { signal() }
  }

  /// - Returns: what the observer is to be told; nil if it was told so last.
  private func news() -> PeerReachability? {
    let answer = state.withLock { state in
      defer { state.answered = nil }
      return state.answered
    }
    let now = answer ?? look()
    // What was answered is old already: a look follows.
    if answer != nil { signal() }
    let isNew = state.withLock { state in
      defer { state.told = now }
      return state.told != now
    }
    watchForStop(of: now.member)
    return isNew ? now : nil
  }

  private func look() -> PeerReachability {
    do {
      return try PeerReachability.of(peer, in: container)
    } catch {
      // For want of descriptors, perhaps: what presence has found is known all the same.
      return PeerReachability(state.withLock(\.members))
    }
  }

  // MARK: Stops

  private func watchForStop(of member: PresenceMember?) {
    guard member?.isStopped != nil else { return }
    let mustBegin = state.withLock { state in
      guard !state.hasTimer, !state.isCancelled else { return false }
      state.hasTimer = true
      return true
    }
    guard mustBegin else { return }
    // The look there is one read of a file without a disk behind it, so it may be on this queue.
    Blocking.timers.asyncAfter(deadline: .now() + Self.pace.dispatchInterval) { [weak self] in
      self?.lookForStop()
    }
  }

  private func lookForStop() {
    let told = state.withLock { state in
      state.hasTimer = false
      return state.isCancelled ? nil : state.told
    }
    guard let told, let member = told.member else { return }
    if member.isStopped == !told.isReachable {
      watchForStop(of: member)
    } else {
      signal()
    }
  }

  func cancel() {
    state.withLock { $0.isCancelled = true }
    delivery.withLock { $0 }?.cancel()
  }
}

/// The observers of reachability of one session, by peer. Thread-safe.
final class ReachabilityWatches: Sendable {
  private struct Weak { weak var watch: ReachabilityWatch? }

  private let watches = Mutex<[String: [Weak]]>([:])

  func add(_ watch: ReachabilityWatch) {
    watches.withLock { watches in
      watches[watch.peer, default: []].removeAll { $0.watch == nil }
      watches[watch.peer, default: []].append(Weak(watch: watch))
    }
  }

  /// Somebody was answered this.
  func answered(_ peer: String, _ reachability: PeerReachability) {
    for watch in of(peer) { watch.answered(reachability) }
  }

  /// The peer has sent something.
  func heard(from peer: String) {
    for watch in of(peer) { watch.heard() }
  }

  private func of(_ peer: String) -> [ReachabilityWatch] {
    watches.withLock { watches in
      guard let known = watches[peer] else { return [] }
      let living = known.compactMap(\.watch)
      if living.isEmpty { watches[peer] = nil }
      return living
    }
  }
}
