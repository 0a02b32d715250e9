import AppGroup
import PropertyLists
import Synchronization

/// Where a peer is reached: its mailbox, as long as its presence says nothing else.
final class PeerTarget: Sendable {
  /// One process that is active under the name.
  struct Current: Sendable {
    let member: PresenceMember
    let party: CallParty
  }

  private struct State {
    var current: Current?
    var observation: ObservationToken?
  }

  let peer: String
  private let container: SharedContainer
  private let presence: Presence
  private let calls: CallEndpoint
  private let state = Mutex(State())
  /// One look after the other, so that the later one has the newer result.
  private let looking = Mutex(())
  private let queue = Blocking.queue()

  init(_ peer: String, in container: SharedContainer, _ calls: CallEndpoint) {
    self.peer = peer
    self.container = container
    self.calls = calls
    presence = container.own.presence(PeerNames.presence(peer))
  }

  var current: Current? { state.withLock(\.current) }

  func isCurrent(_ known: Current) -> Bool { current?.party === known.party }

  /// Where the peer is reached; starts it where that is registered.
  ///
  /// - Parameter seen: its process, if the caller has looked just now.
  /// - Throws: `PeerError`: `unreachable`, or the error of starting it.
  func resolve(seen: PresenceMember?, until deadline: ContinuousClock.Instant) throws -> Current {
    if let current { return current }
    try look(seen)
    while true {
      if let current { return current }
      // The obstacle to starting a registered peer is thrown.
      if try !Launcher.launch(peer, for: .request, in: container, until: deadline) {
        let reachability = try PeerReachability.of(peer, in: container)
        guard reachability.isActive else {
          throw PeerError.unreachable(peer, reachability.reason)
        }
      }
      guard ContinuousClock.now < deadline else { throw PeerError.timedOut(peer, nil) }
      try look()
    }
  }

  /// Looks which process is active under the name; calls to one that is not active any more end.
  func look(_ seen: PresenceMember? = nil) throws {
    let ended = try looking.withLock { _ -> (Current, String)? in
      let found = try seen ?? presence.members().active
      if found != nil, state.withLock({ $0.observation == nil }) { try observe() }
      return update(found)
    }
    guard let (old, reason) = ended else { return }
    calls.endCalls(to: old.party, as: .failed(PeerError.ended(peer, old.member, reason)))
  }

  private func observe() throws {
    // The first call is for a process that came or went before the watch.
    let observation = try presence.observe(startsWithCurrent: true, on: queue) { [weak self] _ in
      do {
        // The delivered state may be older than the result of another look, so look again.
        try self?.look()
      } catch {
        // For lack of descriptors, perhaps; presence looks again with the next change.
        return
      }
    }
    state.withLock { $0.observation = observation }
  }

  /// - Returns: the process that is not there any more, and why.
  private func update(_ found: PresenceMember?) -> (Current, String)? {
    let party = found?.mailbox.flatMap(calls.party)
    let (old, observation) = state.withLock { state -> (Current?, ObservationToken?) in
      let old = state.current
      guard let found, let party else {
        let observation = state.observation
        state = State()
        return (old, observation)
      }
      guard old?.party.address != party.address else { return (nil, nil) }
      state.current = Current(member: found, party: party)
      return (old, nil)
    }
    observation?.cancel()
    guard let old else { return nil }
    let reason = found.map { "\($0) has taken its place" } ?? "it has ended"
    return (old, reason)
  }
}

extension [PresenceMember] {
  /// The process that is reached under a peer's name.
  var active: PresenceMember? { last { $0.isExclusive && $0.mailbox != nil } }
}

extension PresenceMember {
  /// Where it is reached.
  var mailbox: String? { content?["mailbox"]?.stringValue }

  static func content(mailbox: String) -> PropertyListValue { ["mailbox": .string(mailbox)] }
}
