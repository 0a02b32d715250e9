import AppGroup
import PropertyLists
import Synchronization

/// Where a peer is reached: its mailbox, as long as its presence says nothing else.
final class PeerTarget: Sendable {
  /// One process that is active under the name.
  struct Current: Sendable {
    let member: PresenceMember
    let address: String
    let outlet: MailboxOutlet
  }

  private struct State {
    var current: Current?
    var observation: Observation?
  }

  let peer: String
  private let container: SharedContainer
  private let presence: Presence
  private let calls: CallTable
  /// Returns when every answer that was given before is delivered; blocks.
  private let catchUp: @Sendable () -> Void
  private let state = Mutex(State())
  /// One look after the other: what the later one finds is newer.
  private let looking = Mutex(())
  private let queue = Blocking.queue()

  init(
    _ peer: String, in container: SharedContainer, _ calls: CallTable,
    catchUp: @escaping @Sendable () -> Void
  ) {
    self.peer = peer
    self.catchUp = catchUp
    self.container = container
    self.calls = calls
    presence = container.own.presence(PeerNames.presence(peer))
  }

  var current: Current? { state.withLock(\.current) }

  func isCurrent(_ known: Current) -> Bool { current?.address == known.address }

  /// Where the peer is reached; starts it where that is registered.
  ///
  /// - Throws: `PeerError`: `unreachable`, or what starting it says.
  func resolve(until deadline: ContinuousClock.Instant) throws -> Current {
    while true {
      if let current { return current }
      try look()
      if let current { return current }
      // Whatever keeps a registered peer from being started is thrown.
      if try !Launcher.launch(peer, for: .request, in: container, until: deadline) {
        let reachability = try PeerReachability.of(peer, in: container)
        guard reachability.isActive else {
          throw PeerError.unreachable(peer, reachability.reason)
        }
      }
      guard ContinuousClock.now < deadline else { throw PeerError.timedOut(peer, nil) }
    }
  }

  /// Looks who is active under the name; calls to one who is not any more end.
  func look() throws {
    let ended = try looking.withLock { _ -> (Current, String)? in
      var found = try presence.activeMember()
      if found != nil, state.withLock({ $0.observation == nil }) {
        try observe()
        // Whoever came or went before the watch is not told of.
        found = try presence.activeMember()
      }
      return update(found)
    }
    if let (old, reason) = ended { end(old, reason) }
  }

  private func observe() throws {
    let observation = try presence.observe(on: queue) { [weak self] _ in
      do {
        // Not what was delivered, which may be older than what another look has found.
        try self?.look()
      } catch {
        // For want of descriptors, perhaps; presence looks again as long as there is any change.
        return
      }
    }
    state.withLock { $0.observation = observation }
  }

  /// - Returns: who is not there any more, and why.
  private func update(_ found: (member: PresenceMember, address: String)?) -> (Current, String)? {
    let outlet = found.flatMap { MailboxOutlet(in: container, to: $0.address) }
    let (old, observation) = state.withLock { state -> (Current?, Observation?) in
      let old = state.current
      guard let found, let outlet else {
        let observation = state.observation
        state = State()
        return (old, observation)
      }
      guard old?.address != found.address else { return (nil, nil) }
      state.current = Current(member: found.member, address: found.address, outlet: outlet)
      return (old, nil)
    }
    observation?.cancel()
    guard let old else { return nil }
    let reason = found.map { "\($0.member) has taken its place" } ?? "it has ended"
    return (old, reason)
  }

  private func end(_ old: Current, _ reason: String) {
    // Its last answers may lie there still: that it has ended is told by another watch.
    if calls.hasCalls(postedTo: old.address) { catchUp() }
    for (id, call) in calls.removeAll(postedTo: old.address) {
      call.end(.failure(.ended(peer, old.member, reason)))
      do {
        // One that was stopped and replaced may go on: it need not handle what nobody waits for.
        _ = try old.outlet.post(RequestMessage.cancel(id: id, replyTo: call.replyTo).propertyList)
      } catch {
        // It has the call, or not: its caller was told that either may be.
        continue
      }
    }
  }
}

extension Presence {
  /// Who is reached under a peer's name.
  func activeMember() throws -> (member: PresenceMember, address: String)? {
    let active = try members().last { $0.isExclusive && $0.mailbox != nil }
    return active.flatMap { member in member.mailbox.map { (member, $0) } }
  }
}

extension PresenceMember {
  /// Where it is reached.
  var mailbox: String? { content?["mailbox"]?.stringValue }

  static func content(mailbox: String) -> PropertyListValue { ["mailbox": .string(mailbox)] }
}
