import Wormhole
import WormholeSystem

/// Repeated attempts to get the exclusive role, until one succeeds or the deadline has passed; or
/// to enter beside others while no process has the role.
///
/// Whether the role is free is decided by the transaction that takes it. A mirror of the presence's
/// keys shows when to try, and for a process of this machine /proc does, too.
final class EtcdRoleAcquisition: Waiting {
  /// How often a waiter checks whether a process of this machine is stopped, which causes no event.
  private static let lookInterval: Duration = .seconds(1)

  private let presence: EtcdPresence
  private let entrance: EtcdEntrance
  private let companion: (any EtcdCompanion)?
  private let overtaking: Presence.Overtaking
  private let deadline: ContinuousClock.Instant
  /// Whether it waits.
  private let isPatient: Bool
  /// The end of all calls, at least a moment after the start.
  private let limit: ContinuousClock.Instant
  private let latch = WakeLatch()
  private var mirror: EtcdMirror?
  /// The result of the last refusal.
  private var refusal: EtcdClient.Content?
  private let stopped = StoppedHolders()

  init(
    _ presence: EtcdPresence, _ record: PresenceRecord, overtaking: Presence.Overtaking,
    until deadline: ContinuousClock.Instant, with companion: (any EtcdCompanion)? = nil
  ) {
    self.presence = presence
    self.companion = companion
    entrance = EtcdEntrance(presence, record, with: companion)
    self.overtaking = overtaking
    self.deadline = deadline
    isPatient = ContinuousClock.now < deadline
    limit = CallLimit.callDeadline(deadline)
  }

  func step() throws -> WaitingStep<any PresenceHold> {
    let role = presence.role(in: newest)
    // A dead process of this machine need not delay the entry until its session has ended.
    guard let member = role?.member, member.state != .gone,
      !stopped.mayOvertake(member, overtaking)
    else { return try take(role) }
    return try wait(for: member)
  }

  /// The newest known keys of the presence.
  private var newest: [KeyValue] {
    guard let content = mirror?.content, refusal.map({ $0.moment <= content.moment }) ?? true else {
      return refusal?.items ?? []
    }
    return content.items
  }

  private func take(_ role: EtcdPresence.Role?) throws -> WaitingStep<any PresenceHold> {
    switch try entrance.attempt(.over(role), on: call) {
    case .entered(let epoch):
      if let other = role?.member {
        Diagnostics.noteTakeover(
          of: presence.title.role, presence.path, from: other.holder,
          in: presence.etcd.location.description)
      }
      return .done(EtcdRegistration(presence, entrance.record, epoch: epoch, with: companion))
    case .refused(let found):
      refusal = found
      guard ContinuousClock.now < limit else { throw busy(found.items) }
      return .again
    }
  }

  private func wait(for member: PresenceMember) throws -> WaitingStep<any PresenceHold> {
    let now = ContinuousClock.now
    // The first answer may have come late. A waiting entry still sees that this process is
    // stopped, which is certain a grace later.
    let isAboutToLose = isPatient && overtaking == .suspended && member.state == .suspended
    guard now < deadline || isAboutToLose else {
      if let failure = mirror?.failure { throw failure }
      throw presence.title.busy(member, path: presence.path)
    }
    guard mirror != nil else {
      mirror = try EtcdMirror(presence.etcd, range: presence.everything, until: call.callDeadline) {
        [latch] _ in latch.raise()
      }
      return .again
    }
    let end = now + pause(for: member)
    return .wait(for: latch, until: isAboutToLose ? end : min(deadline, end))
  }

  private var call: EtcdContainer { presence.etcd.until(CallLimit.callDeadline(deadline)) }

  /// The error at the deadline, if others were faster all the time.
  private func busy(_ items: [KeyValue]) -> WormholeError {
    guard let member = presence.role(in: items)?.member else {
      return WormholeError(
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
}
