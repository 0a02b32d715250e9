public import PropertyLists
import SystemCalls

extension Presence {
  /// Whose registration another may take over.
  public enum Overtaking: Sendable, Hashable {
    /// That of a process that is stopped, and has been for 50 ms: it learns it when it goes on.
    case suspended
    /// Nobody's who lives.
    case nobody
  }

  /// Registers this process as the only one that is exclusively here.
  ///
  /// Only one registration has the role at a time; the others wait, and enter when it leaves or dies.
  /// Whoever acts in the role on something that another must not act on at the same time should
  /// `confirm()` it, for it may have been stopped and overtaken just before.
  ///
  /// - Parameters:
  ///   - content: something small for others to know.
  ///   - overtaking: whether a suspended process loses the role to this one.
  ///   - deadline: until when to wait; already past means "only if nobody has it". By default 10
  ///     seconds from now.
  /// - Throws: `AppGroupError`: `timedOut`, its `holder` who is here instead; otherwise as `enter`.
  /// - Complexity: as `enter`, and one update of a value. Waits for an event; looks once a second
  ///   whether a stopped process could be overtaken.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func enterExclusively(
    content: PropertyListValue? = nil, overtaking: Overtaking = .suspended,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> PresenceRegistration {
    let entry = try ExclusiveEntry(self, content, overtaking, deadline)
    while true {
      switch try entry.step() {
      case .entered(let registration): return registration
      case .wait(let moment): entry.latch.block(until: moment)
      }
    }
  }

  /// Registers this process as the only one; see the form without `async`. Cancelling the task ends
  /// the wait with `CancellationError`.
  public func enterExclusively(
    content: PropertyListValue? = nil, overtaking: Overtaking = .suspended,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> PresenceRegistration {
    let entry = try await Blocking.run {
      try ExclusiveEntry(self, content, overtaking, deadline)
    }
    while true {
      try Task.checkCancellation()
      switch try await Blocking.run({ try entry.step() }) {
      case .entered(let registration): return registration
      case .wait(let moment): await entry.latch.suspend(until: moment)
      }
    }
  }

  // MARK: The role

  enum RoleOutcome {
    case taken(PresencePost)
    case busy(PresenceMember)
  }

  /// Names whose role it is to be the only one.
  var role: Value { Value(container: container, identifier: name, kind: place.directory.kind) }

  /// Whose the role is; nil for nobody's.
  func roleID() throws -> String? { try Self.id(in: role.snapshot()) }

  private static func id(in snapshot: Snapshot) throws -> String? {
    do {
      return try snapshot.propertyList()?["id"]?.stringValue
    } catch let error as AppGroupError where error.code == .damaged {
      // Nobody can claim the role by it.
      return nil
    }
  }

  /// Gives the role to a registration, unless it is another's that lives.
  ///
  /// The registration's file is complete and locked before the role names it: whoever reads the
  /// role sees at once that it lives.
  func takeRole(
    _ record: PresenceRecord, until deadline: ContinuousClock.Instant,
    overtakes: @escaping @Sendable (PresenceMember) -> Bool
  ) throws -> RoleOutcome {
    if let holder = try livingHolder(try roleID(), record), !overtakes(holder) {
      return .busy(holder)
    }
    let directory = SharedDescriptor(try place.directory.openOrMake())
    let post = try PresencePost.stage(record, at: directory.descriptor, in: container.root)
    var hasEntered = false
    defer {
      if !hasEntered { place.discardStaged(record, at: directory.descriptor) }
    }
    let mine = try PropertyListValue.dictionary(["id": .string(record.id)]).binaryBytes()
    let holders = try role.edit(.init(.standard, deadline)) {
      snapshot -> (Edit, (mayEnter: Bool, other: PresenceMember?)) in
      let other = try livingHolder(try Self.id(in: snapshot), record)
      if let other, !overtakes(other) { return (.keep, (false, other)) }
      return (.replace(mine), (true, other))
    }
    if let other = holders.other {
      guard holders.mayEnter else { return .busy(other) }
      try place.retire(other)
    }
    try place.publish(record, at: directory.descriptor)
    hasEntered = true
    return .taken(post)
  }

  /// Removes the file that names whose role it is, unless that one lives.
  ///
  /// - Parameter lease: the role's.
  /// - Returns: false when somebody has the role.
  func removeRole(_ lease: Lease) throws -> Bool {
    if let id = try roleID(), try place.living(id) != nil { return false }
    _ = try lease.remove(role.fileName, durability: .standard)
    return true
  }

  /// Forgets who was last.
  func removeLast() throws {
    guard let place = try place.directory.open() else { return }
    try PresencePost.discard(PresenceDirectory.last, at: place.rawValue)
  }

  private func livingHolder(_ id: String?, _ record: PresenceRecord) throws -> PresenceMember? {
    guard let id, id != record.id else { return nil }
    return try place.living(id)
  }
}
