import Wormhole
import WormholeSystem

/// One attempt after another to get the exclusive role, until it succeeds or the deadline has passed.
///
/// Whether the role is free is decided by the transaction that takes it. A mirror of the presence's
/// keys shows when to try, and for a process of this machine /proc does, too.
final class EtcdEntry: Waiting {
  /// How often a waiter checks whether a process of this machine is stopped, which causes no event.
  private static let lookInterval: Duration = .seconds(1)

  private let presence: EtcdPresence
  private let entrance: EtcdEntrance
  private let overtaking: Presence.Overtaking
  private let deadline: ContinuousClock.Instant
  /// Whether it waits.
  private let isPatient: Bool
  /// The end of all calls, at least a moment after the beginning.
  private let limit: ContinuousClock.Instant
  private let latch = WakeLatch()
  private var mirror: EtcdMirror?
  /// The result of the last refusal.
  private var refusal: EtcdClient.Content?
  private var stopped = StoppedHolders()

  init(
    _ presence: EtcdPresence, _ record: PresenceRecord, overtaking: Presence.Overtaking,
    until deadline: ContinuousClock.Instant
  ) {
    self.presence = presence
    entrance = EtcdEntrance(presence, record)
    self.overtaking = overtaking
    self.deadline = deadline
    isPatient = ContinuousClock.now < deadline
    limit = CallLimit.callDeadline(deadline)
  }

  deinit { entrance.giveUp() }

  private enum Choice {
    case take(EtcdEntrance.Terms)
    case wait(PresenceMember)
  }

  func step() throws -> WaitingStep<any PresenceHold> {
    switch choice() {
    case .take(let terms):
      switch try entrance.attempt(terms, until: CallLimit.callDeadline(deadline)) {
      case .entered(let place):
        noteTakeover(terms)
        return .done(EtcdRegistration(presence, entrance.record, place: place))
      case .refused(let found):
        refusal = found
        guard ContinuousClock.now < limit else { throw busy(found.items) }
        return .again
      }
    case .wait(let member):
      let now = ContinuousClock.now
      // The first answer may have come late. A waiting entry still sees that this process is
      // stopped, which is certain a grace later.
      let isAboutToLose =
        isPatient && overtaking == .suspended && member.state == .suspended
      guard now < deadline || isAboutToLose else {
        if let failure = mirror?.failure { throw failure }
        throw presence.title.busy(member, path: presence.path)
      }
      guard mirror != nil else {
        mirror = try EtcdMirror(
          presence.etcd, range: presence.everything, until: CallLimit.callDeadline(deadline)
        ) { [latch] in latch.raise() }
        return .again
      }
      let end = now + pause(for: member)
      return .wait(for: latch, until: isAboutToLose ? end : min(deadline, end))
    }
  }

  /// The error at the deadline, if others were faster all the time.
  private func busy(_ items: [KeyValue]) -> AppGroupError {
    guard case .held(let member, _) = presence.role(in: items) else {
      return AppGroupError(
        .timedOut, presence.title.action, path: presence.path,
        reason: "others came and went all the time", remedy: "wait longer")
    }
    return presence.title.busy(member, path: presence.path)
  }

  /// How long nothing can happen without an event.
  private func pause(for member: PresenceMember) -> Duration {
    switch member.state {
    case .suspended where overtaking == .suspended: LeaseRequest.grace
    case .unknown: .seconds(60)
    case .suspended, .running, .gone: Self.lookInterval
    }
  }

  /// The next step, by the newest known state.
  private func choice() -> Choice {
    var items = refusal?.items ?? []
    if let content = mirror?.content, refusal.map({ $0.moment <= content.moment }) ?? true {
      items = content.items
    }
    switch presence.role(in: items) {
    case .free: return .take(.free)
    case .orphaned(let role): return .take(.from(nil, role))
    case .held(let member, let role):
      // A dead process of this machine need not delay the entry until its session has ended.
      return member.state == .gone || stopped.mayOvertake(member, overtaking)
        ? .take(.from(member, role)) : .wait(member)
    }
  }

  private func noteTakeover(_ terms: EtcdEntrance.Terms) {
    guard case .from(let other?, _) = terms else { return }
    Diagnostics.noteTakeover(
      of: presence.title.role, presence.path, from: other.holder,
      in: presence.etcd.location.description)
  }
}
