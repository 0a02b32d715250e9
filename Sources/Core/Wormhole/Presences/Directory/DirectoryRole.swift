import WormholePropertyLists
import WormholeSystem

// The exclusive role: a value that names the registration that has it.
extension PresenceDirectory {
  enum RoleOutcome {
    case taken(PresenceFile, fence: UInt64)
    case busy(PresenceMember)
    /// The awaited process did not leave: a program has removed its registration.
    case removed(PresenceMember)
  }

  /// The value that names the registration with the exclusive role.
  package var role: PlainValue {
    PlainValue(container: container, identifier: title.name, kind: title.kind)
  }

  /// Returns the id of the registration with the role, or nil if there is none.
  package func roleID() throws -> String? { try Self.id(in: role.snapshot()) }

  /// Returns the process that has the role; nil if there is none.
  func roleHolder() throws -> PresenceMember? { try holder(roleID()) }

  /// - Parameter id: The registration that the role names. A worker of a queue that has taken the role from
  ///   a stopped process does not have it.
  private func holder(_ id: String?) throws -> PresenceMember? {
    guard let id, let member = try living(id), member.isExclusive else { return nil }
    return member
  }

  private static func id(in snapshot: PlainSnapshot) throws -> String? {
    do {
      return try snapshot.propertyList()?["id"]?.stringValue
    } catch let error as WormholeError where error.code == .damaged {
      // No process can claim the role through it.
      return nil
    }
  }

  package func proof(of number: UInt64) -> RoleProof {
    RoleProof(
      value: role, number: number, location: container.location,
      lost: title.fenced(path: path))
  }

  /// Gives the role to a registration, unless another live one has it; or only takes it from a stopped
  /// process, for a registration without the role.
  ///
  /// The registration's file is complete and locked before the role names it, so a reader of the
  /// role sees at once that it is alive. Until it has the name of a member, its process has not
  /// entered: one that takes the role over then removes the file, and the late process finds that
  /// when it gives the file its name.
  ///
  /// - Parameters:
  ///   - completes: Whether it gets that name at once.
  ///   - removedMember: Called when the role seems to be free.
  func takeRole(
    _ record: PresenceRecord, until deadline: ContinuousClock.Instant, completes: Bool = true,
    removedMember: () throws -> PresenceMember? = { nil },
    overtakes: @escaping @Sendable (PresenceMember) throws -> Bool
  ) throws -> RoleOutcome {
    let holder = try otherHolder(try roleID(), record)
    if let holder {
      guard try overtakes(holder), try endWork(of: holder, until: .now + Self.endingTime) else {
        return .busy(holder)
      }
    }
    if let member = try removedMember() { return .removed(member) }
    guard record.isExclusive || holder != nil else { return .taken(try makeFile(record), fence: 0) }
    let place = SharedDescriptor(try directory.openOrMake())
    let file = try PresenceFile.stage(record, at: place.descriptor, in: root)
    var hasEntered = false
    defer { if !hasEntered { discardStaged(record, at: place.descriptor) } }
    let holders = try role.edit(.init(until: deadline)) {
      snapshot -> (Edit, (fence: UInt64?, other: PresenceMember?)) in
      let other = try otherHolder(try Self.id(in: snapshot), record)
      if let other, !LeaseFault.enteringUnseen.isActive {
        guard try overtakes(other), try endWork(of: other, until: .now) else {
          return (.keep, (nil, other))
        }
      }
      if let other, other.isEntering, try !removeEntering(other, at: place.descriptor) {
        // It has entered just now.
        return (.keep, (nil, other))
      }
      let fence = RoleProof.next(after: snapshot)
      let mine: PropertyListValue = [
        "id": .string(record.id), RoleProof.key: PropertyListValue(fence),
      ]
      return (.replace(try mine.binaryBytes()), (fence, other))
    }
    guard let fence = holders.fence else {
      guard let other = holders.other else {
        preconditionFailure("nobody else keeps a process out")
      }
      return .busy(other)
    }
    if let other = holders.other {
      Diagnostics.noteTakeover(
        of: title.role, path, from: other.holder, in: container.root.path)
      if !other.isEntering { try retire([other.id]) }
    }
    if completes || !record.isExclusive { try publish(record, at: place.descriptor) }
    hasEntered = true
    return .taken(file, fence: fence)
  }

  /// How long a killed process may take to end, before others are looked at.
  private static let endingTime: Duration = .milliseconds(200)

  /// See `Examiner.endWork`.
  func endWork(
    of member: PresenceMember, until deadline: ContinuousClock.Instant
  ) throws -> Bool {
    try directory.withOpenDirectory {
      try Examiner($0, root).endWork(of: member.id, until: deadline)
    } ?? true
  }

  /// Whether a command works under a registration, and all its processes are stopped.
  func isWorkStopped(of member: PresenceMember) throws -> Bool {
    try directory.withOpenDirectory { try Examiner($0, root).isWorkStopped(of: member.id) } ?? false
  }

  /// Removes the file that names the holder of the role, unless the holder is alive.
  ///
  /// - Parameter lease: The lease of the role.
  /// - Returns: False if a process has the role.
  package func removeRole(_ lease: Lease) throws -> Bool {
    if try roleHolder() != nil { return false }
    _ = try lease.remove(role.fileName, durability: .standard)
    return true
  }

  /// Removes the record of the last registration.
  package func removeLast() throws {
    guard let place = try directory.open() else { return }
    try removeIfPresent(PresenceDirectory.last, at: place.rawValue)
  }

  private func otherHolder(_ id: String?, _ record: PresenceRecord) throws -> PresenceMember? {
    id == record.id ? nil : try holder(id)
  }

  private func removeEntering(
    _ member: PresenceMember, at place: borrowing FileDescriptor
  ) throws(Errno) -> Bool {
    try removeIfPresent(Self.enteringName(member.id), at: place.rawValue)
  }
}

/// One attempt after another to become exclusively present, or present beside no process with the role,
/// until it succeeds or the deadline has passed.
final class DirectoryRoleAcquisition: Waiting {
  /// The interval at which a waiter checks whether the present process is stopped, which causes no
  /// event.
  private static let lookInterval: Duration = .seconds(1)

  private let latch: WakeLatch
  private let presence: PresenceDirectory
  private let record: PresenceRecord
  private let overtaking: Presence.Overtaking
  private let deadline: ContinuousClock.Instant
  private let isGone: (() throws -> Bool)?
  private let looks: FollowUpChecks
  private var hasBegun = false
  private var watch: Watch?
  /// The present process, and the last registration before it, as of the latest look.
  private var waitsFor: (member: PresenceMember, last: String?, since: ContinuousClock.Instant)?
  /// The process that was present when its file was removed.
  private var removed: PresenceMember?
  private let stopped = StoppedHolders()
  /// How often a file or the directory vanished under it.
  private var vanishings = 0

  init(
    _ presence: PresenceDirectory, _ record: PresenceRecord,
    overtaking: Presence.Overtaking, until deadline: ContinuousClock.Instant,
    isGone: (() throws -> Bool)?
  ) {
    let latch = WakeLatch()
    self.latch = latch
    self.presence = presence
    self.record = record
    self.overtaking = overtaking
    self.deadline = deadline
    self.isGone = isGone
    looks = FollowUpChecks { latch.raise() }
  }

  deinit { looks.cancel() }

  private func begin() throws {
    // A look at all registrations, of which a queue may have hundreds.
    let sweep = { [presence, record] in if record.isExclusive { try presence.sweep() } }
    // Consumers join again by themselves; only a change makes a group again.
    if presence.directory.kind.primitive == .consumer { return try sweep() }
    try presence.root.changing(sweep)
  }

  func step() throws -> WaitingStep<any PresenceHold> {
    if !hasBegun { try begin() }
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
    case .taken(let file, let fence):
      return .done(
        DirectoryRegistration(
          presence, record, file, fence: fence, isEntering: isGone != nil && record.isExclusive))
    case .removed(let member):
      (removed, waitsFor) = (member, nil)
      ChangeMonitor.shared.noteRemoval(in: presence.container.root.path)
      return try pause(for: member)
    case .busy(let member):
      let now = ContinuousClock.now
      guard now < deadline else { throw busy(member) }
      if waitsFor?.member.id != member.id {
        let last = try presence.lastRecord()?.id
        // It may have left before that look, and another one after it.
        guard
          try LeaseFault.missingFormerHolder.isActive || presence.living(member.id) != nil
        else { return .again }
        waitsFor = (member, last, now)
      }
      // First the watch, then the look.
      guard watch != nil else {
        watch = try presence.directory.watch { [looks] in looks.begin() }
        return try attempt()
      }
      // Not before a grace: its work may not have ended yet.
      let due = stopped.due.map { max($0, now + LeaseRequest.grace) }
      let next = [due, deadline, now + Self.lookInterval]
      return .wait(for: latch, until: next.compactMap(\.self).min())
    }
  }

  // A program may be removing the whole container: until that has ended nothing is created.
  private func pause(for member: PresenceMember) throws -> WaitingStep<any PresenceHold> {
    guard ContinuousClock.now < deadline else { throw busy(member) }
    return .wait(for: latch, until: min(deadline, .now + ChangeMonitor.pollInterval))
  }

  private func take() throws -> PresenceDirectory.RoleOutcome {
    // A look at all processes is for waits that last.
    let isPatient = waitsFor.map { .now >= $0.since + Self.lookInterval } ?? false
    do {
      return try presence.takeRole(
        record, until: deadline, completes: isGone == nil, removedMember: removedMember
      ) { [stopped, overtaking, presence, isPatient] member in
        // The holder may run while its command, with all that it has started, is stopped.
        let isLooking = overtaking == .suspended && (member.state == .suspended || isPatient)
        return try stopped.mayOvertake(
          member, overtaking, isWorkStopped: isLooking && presence.isWorkStopped(of: member),
          at: presence.path)
      }
    } catch let error as WormholeError where error.code == .containerMissing {
      guard let (member, _, _) = waitsFor else { throw error }
      return .removed(member)
    }
  }

  /// Returns the awaited process if a program has removed its file, its role, or what it did in that.
  private func removedMember() throws -> PresenceMember? {
    guard let (member, last, _) = waitsFor else { return nil }
    // A live process keeps its role, or loses it to another. One that leaves or dies is recorded as
    // last.
    if try presence.living(member.id) != nil {
      return try presence.roleID() == nil ? member : nil
    }
    // A dead one's file stays until another process moves it aside. What it did in the role cannot be
    // missing before it has entered.
    guard
      try LeaseFault.takingDeadForRemoved.isActive || !presence.hasFile(of: member.id)
    else { return try !member.isEntering && isGone?() == true ? member : nil }
    let current = try presence.lastRecord()?.id
    return current == nil || current == last && current != member.id ? member : nil
  }

  private func busy(_ member: PresenceMember) -> WormholeError {
    presence.title.busy(member, path: presence.path)
  }
}
