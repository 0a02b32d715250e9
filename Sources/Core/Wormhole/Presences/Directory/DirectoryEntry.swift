import WormholePropertyLists
import WormholeSystem

/// One attempt after another to become exclusively present, until it succeeds or the deadline has
/// passed.
final class DirectoryEntry: Waiting {
  /// The interval at which a waiter checks whether the present process is stopped, which causes no
  /// event.
  private static let lookInterval: Duration = .seconds(1)

  private let latch: WakeLatch
  private let presence: PresenceDirectory
  private let record: PresenceRecord
  private let overtaking: Presence.Overtaking
  private let deadline: ContinuousClock.Instant
  private let looks: FollowUpChecks
  private var hasBegun = false
  private var watch: Watch?
  /// The present process, and the last registration before it, as of the latest look.
  private var waitsFor: (member: PresenceMember, last: String?)?
  /// The process that was present when its file was removed.
  private var removed: PresenceMember?
  private let stopped = StoppedHolders()
  /// How often a file or the directory vanished under it.
  private var vanishings = 0

  init(
    _ presence: PresenceDirectory, _ record: PresenceRecord,
    overtaking: Presence.Overtaking, until deadline: ContinuousClock.Instant
  ) {
    let latch = WakeLatch()
    self.latch = latch
    self.presence = presence
    self.record = record
    self.overtaking = overtaking
    self.deadline = deadline
    looks = FollowUpChecks { latch.raise() }
  }

  deinit { looks.cancel() }

  func step() throws -> WaitingStep<any PresenceHold> {
    if !hasBegun { try presence.sweep() }
    hasBegun = true
    do {
      return try attempt()
    } catch let error as Errno where error == .noSuchFile {
      // The directory was removed meanwhile, and the removing process may not have finished; or this
      // process was stopped, and another has overtaken it before it had entered.
      vanishings += 1
      // After the deadline, too, because the next attempt names the process in the way.
      guard ContinuousClock.now < deadline || vanishings < renameRaceLimit else { throw error }
      return .wait(for: latch, until: .now + .milliseconds(1))
    }
  }

  private func attempt() throws -> WaitingStep<any PresenceHold> {
    if let member = removed {
      guard ChangeMonitor.shared.isSettled(presence.container.root.path) else {
        return try pause(for: member)
      }
      removed = nil
    }
    switch try take() {
    case .taken(let post, let fence):
      return .done(DirectoryRegistration(presence, record, post, fence: fence))
    case .removed(let member):
      (removed, waitsFor) = (member, nil)
      ChangeMonitor.shared.noteRemoval(in: presence.container.root.path)
      return try pause(for: member)
    case .busy(let member):
      let now = ContinuousClock.now
      guard now < deadline else { throw busy(member) }
      if waitsFor?.member.id != member.id {
        waitsFor = (member, try presence.lastRecord()?.id)
      }
      // First the watch, then the look.
      guard watch != nil else {
        watch = try presence.directory.watch { [looks] in looks.begin() }
        return try attempt()
      }
      let next =
        overtaking == .suspended && member.state == .suspended
        ? LeaseRequest.grace : Self.lookInterval
      return .wait(for: latch, until: min(deadline, now + next))
    }
  }

  // A program may be removing the whole container: until that has ended nothing is created.
  private func pause(for member: PresenceMember) throws -> WaitingStep<any PresenceHold> {
    guard ContinuousClock.now < deadline else { throw busy(member) }
    return .wait(for: latch, until: min(deadline, .now + ChangeMonitor.pollInterval))
  }

  private func take() throws -> PresenceDirectory.RoleOutcome {
    do {
      return try presence.takeRole(record, until: deadline, removedMember: removedMember) {
        [stopped, overtaking] in stopped.mayOvertake($0, overtaking)
      }
    } catch let error as AppGroupError where error.code == .containerMissing {
      guard let (member, _) = waitsFor else { throw error }
      return .removed(member)
    }
  }

  /// Returns the awaited process if a program has removed its file or its role.
  private func removedMember() throws -> PresenceMember? {
    guard let (member, last) = waitsFor else { return nil }
    // A live process keeps its role, or loses it to another. One that leaves or dies is recorded as
    // last.
    if try presence.living(member.id) != nil {
      return try presence.roleID() == nil ? member : nil
    }
    let current = try presence.lastRecord()?.id
    return current == nil || current == last && current != member.id ? member : nil
  }

  private func busy(_ member: PresenceMember) -> AppGroupError {
    presence.title.busy(member, path: presence.path)
  }
}
