import PropertyLists
import Synchronization
import SystemCalls

/// One attempt after another to be the only one, until it is so or the deadline has passed.
final class ExclusiveEntry: Sendable {
  enum Step {
    case entered(PresenceRegistration)
    /// Nothing to do before the latch is raised or this moment comes.
    case wait(until: ContinuousClock.Instant)
  }

  /// How often somebody who waits looks whether the one who is here is stopped: no event tells.
  private static let lookInterval: Duration = .seconds(1)

  private struct Waiting {
    var watch: Watch?
    var suspendedSince: [String: ContinuousClock.Instant] = [:]
  }

  let latch: WakeLatch
  private let presence: Presence
  private let record: PresenceRecord
  private let overtaking: Presence.Overtaking
  private let deadline: ContinuousClock.Instant
  private let looks: SecondLooks
  private let waiting = Mutex(Waiting())

  init(
    _ presence: Presence, _ content: PropertyListValue?, _ overtaking: Presence.Overtaking,
    _ deadline: ContinuousClock.Instant?
  ) throws {
    let latch = WakeLatch()
    self.latch = latch
    self.presence = presence
    self.overtaking = overtaking
    self.deadline = deadline ?? .now + Value.standardWait
    looks = SecondLooks { latch.raise() }
    record = PresenceRecord(isExclusive: true, content: content)
    try presence.check(record)
    try reporting(presence.action, path: presence.path) {
      try presence.place.sweep()
    }
  }

  deinit { looks.end() }

  func step() throws -> Step {
    try reporting(presence.action, path: presence.path) {
      do {
        return try attempt()
      } catch let error as Errno where error == .noSuchFile && ContinuousClock.now < deadline {
        // The directory was removed meanwhile; whoever removes it may not be done.
        return .wait(until: .now + .milliseconds(1))
      }
    }
  }

  private func attempt() throws -> Step {
    let outcome = try presence.takeRole(record, until: deadline) { [self] in mayOvertake($0) }
    switch outcome {
    case .taken(let post):
      let registration = PresenceRegistration(presence, record)
      try registration.begin(with: post)
      return .entered(registration)
    case .busy(let member):
      let now = ContinuousClock.now
      guard now < deadline else { throw busy(member) }
      // Watch first, and look then.
      guard try isWatching() else { return .wait(until: now) }
      let next =
        overtaking == .suspended && member.state == .suspended
        ? LeaseRequest.grace : Self.lookInterval
      return .wait(until: min(deadline, now + next))
    }
  }

  private func mayOvertake(_ member: PresenceMember) -> Bool {
    guard overtaking == .suspended, member.state == .suspended else { return false }
    return waiting.withLock { waiting in
      let since = waiting.suspendedSince[member.id] ?? .now
      waiting.suspendedSince = [member.id: since]
      return ContinuousClock.now - since >= LeaseRequest.grace
    }
  }

  /// - Returns: whether there was a watch already.
  private func isWatching() throws -> Bool {
    guard waiting.withLock({ $0.watch == nil }) else { return true }
    let watch = try presence.place.directory.watch { [looks] in looks.begin() }
    waiting.withLock { $0.watch = watch }
    return false
  }

  private func busy(_ member: PresenceMember) -> AppGroupError {
    let isConsumer = presence.place.directory.kind.primitive == .consumer
    return AppGroupError(
      .timedOut, presence.action + (isConsumer ? "" : " exclusively"), path: presence.path,
      reason: isConsumer
        ? "\(member.holder), consumes it already, and only one does at a time"
        : "\(member.holder) is here",
      remedy: "wait longer, or end that process", holder: member.holder)
  }
}
