import Dispatch
import FoundationEssentials
import Synchronization
import Wormhole
import WormholeSystem

/// Reports to one observer how a peer can be reached, and remembers the last reported state.
///
/// A process that appears, leaves or dies causes an event of the peer's presence. The kernel has no
/// event for a process that is stopped or continues: while a process is active under the name, one
/// file of /proc is read once a second, and otherwise nothing. If this session finds a different
/// state meanwhile, because it looks or because the peer has sent something, that is reported at
/// once: the observer's last state is that of the last answer.
final class ReachabilityWatch: Cancelling {
  /// How long a stop may go unnoticed while the session does not look.
  static let pace: Duration = .seconds(1)

  private struct State {
    var reported: PeerReachability?
    /// The state in an answer, to be reported to the observer.
    var answered: PeerReachability?
    /// The processes that were present at the last event.
    var members: [PresenceMember] = []
    var hasTimer = false
    var isCancelled = false
  }

  let peer: String
  private let container: SharedContainer
  private let state = Mutex(State())
  /// Holds this object weakly; nil only before it is made.
  private let delivery = Mutex<ChangeDelivery<Void>?>(nil)

  private init(_ peer: String, in container: SharedContainer) {
    self.peer = peer
    self.container = container
  }

  /// Reports to the handler how the peer can be reached, now and after each change.
  ///
  /// - Parameter watches: the session's watches, whose answers are also reported.
  static func observe(
    _ peer: String, in container: SharedContainer, of watches: ReachabilityWatches,
    on queue: DispatchQueue, _ handler: @escaping @Sendable (PeerReachability) -> Void
  ) throws -> ObservationToken {
    let watch = ReachabilityWatch(peer, in: container)
    let delivery = ChangeDelivery<Void>(initial: (), on: queue) { [weak watch] _ in
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
    return ObservationToken(watch: events, delivery: watch)
  }

  // MARK: Possible changes

  /// The state may have changed: looks soon.
  func signal() { delivery.withLock { $0 }?.signal() }

  func answered(_ reachability: PeerReachability) {
    let isNews = state.withLock { state in
      guard state.reported != nil, state.reported != reachability else { return false }
      state.answered = reachability
      return true
    }
    if isNews { signal() }
  }

  func heard() {
    if state.withLock({ $0.reported?.isReachable == false }) { signal() }
  }

  /// - Returns: the state to report to the observer; nil if it was the last one reported.
  private func news() -> PeerReachability? {
    let answer = state.withLock { state in
      defer { state.answered = nil }
      return state.answered
    }
    // After an error, perhaps for lack of descriptors, the last event's members are still known.
    let found = answer ?? (try? PeerReachability.of(peer, in: container))
    let now = found ?? PeerReachability(state.withLock(\.members))
    // The answer is already old: a look follows.
    if answer != nil { signal() }
    let last = state.withLock { state in
      defer { state.reported = now }
      return state.reported
    }
    watchForStop(of: now.member)
    if let last, last != now {
      Diagnostics.note(
        .reachability, at: .info, "the peer \"\(peer)\" is \(now.word): \(now.reason)",
        in: container.place, dimensions: ["state": now.word],
        fields: ["peer": peer, "reason": now.reason])
    }
    return last != now ? now : nil
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
    // The look reads one file with no disk behind it, so it may be on this queue.
    Timers.after(Self.pace) { [weak self] in
      self?.lookForStop()
    }
  }

  private func lookForStop() {
    let reported = state.withLock { state in
      state.hasTimer = false
      return state.isCancelled ? nil : state.reported
    }
    guard let reported, let member = reported.member else { return }
    if member.isStopped == !reported.isReachable {
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

/// One session's reachability observers, by peer. Thread-safe.
final class ReachabilityWatches: Sendable {
  private struct Weak { weak var watch: ReachabilityWatch? }

  /// By the bytes of the peers' names, of which two may be equal as strings.
  private let watches = Mutex<[[UInt8]: [Weak]]>([:])

  func add(_ watch: ReachabilityWatch) {
    let key = Array(watch.peer.utf8)
    watches.withLock { watches in
      watches[key, default: []].removeAll { $0.watch == nil }
      watches[key, default: []].append(Weak(watch: watch))
    }
  }

  func answered(_ peer: String, _ reachability: PeerReachability) {
    for watch in of(peer) { watch.answered(reachability) }
  }

  func heard(from peer: String) {
    for watch in of(peer) { watch.heard() }
  }

  private func of(_ peer: String) -> [ReachabilityWatch] {
    let key = Array(peer.utf8)
    return watches.withLock { watches in
      guard let known = watches[key] else { return [] }
      let living = known.compactMap(\.watch)
      if living.isEmpty { watches[key] = nil }
      return living
    }
  }
}

/// Reports all peers of a container: watches for new names, and how each can be reached. After any
/// change it looks at all peers, once for all changes before it. It ends when it is released.
final class PeerCrowd: Sendable {
  private struct State {
    var names: ObservationToken?
    /// By the bytes of their names.
    var peers: [[UInt8]: ObservationToken] = [:]
    var delivery: ChangeDelivery<[Peer]?>?
  }

  private let container: SharedContainer
  private let reachabilities: ReachabilityWatches
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "wormhole.peers")

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
    // The stream keeps it, until it is over.
    continuation.onTermination = { _ in withExtendedLifetime(crowd) {} }
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
    state.withLock { $0.names = ObservationToken(delivery: names) }
    try watchPeers()
    delivery.open(signalled: true)
  }

  private func signal() { state.withLock { $0.delivery }?.signal() }

  private func look() -> [Peer]? {
    do {
      try watchPeers()
      let peers = try Diagnostics.reportingFaults { try Peer.all(in: container, &$0) }
      // So that the watches report later changes.
      for peer in peers { reachabilities.answered(peer.name, peer.reachability) }
      return peers
    } catch {
      // Perhaps for lack of descriptors, which may pass.
      queue.after(.milliseconds(200)) { [weak self] in self?.signal() }
      return nil
    }
  }

  // Watch first, then look.
  private func watchPeers() throws {
    for name in try container.own.presenceNames() {
      guard let peer = PeerNames.peer(ofPresence: name),
        state.withLock({ $0.peers[Array(name.utf8)] == nil })
      else { continue }
      let observation = try ReachabilityWatch.observe(
        peer, in: container, of: reachabilities, on: queue
      ) { [weak self] _ in self?.signal() }
      state.withLock { $0.peers[Array(name.utf8)] = observation }
    }
  }
}
