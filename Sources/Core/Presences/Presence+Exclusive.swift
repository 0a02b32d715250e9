package import Containers
import Monitoring
public import PropertyLists
import SystemCalls
package import Values

extension Presence {
  /// The registrations that another process may take over.
  public enum Overtaking: Sendable, Hashable {
    /// That of a process that has been stopped for at least 50 ms; it finds out when it is
    /// continued.
    case suspended
    /// None of a live process.
    case nobody
  }

  /// Registers this process as the exclusive one.
  ///
  /// Only one registration has the role at a time. Others wait, and enter when it leaves or dies.
  /// Before an action that two processes must not take at the same time, call `confirm()`, because
  /// the process may have been stopped and overtaken just before.
  ///
  /// - Parameters:
  ///   - content: A small value for other processes.
  ///   - overtaking: Whether a suspended process loses the role to this one.
  ///   - deadline: The latest instant to wait; an instant in the past means "only if the role is
  ///     free". By default 10 seconds from now.
  /// - Throws: `AppGroupError`: `timedOut` with the present process as its `holder`; otherwise as
  ///   `enter`.
  /// - Complexity: As `enter`, and one update of a value. Waits for an event; checks once a second
  ///   whether a stopped process can be overtaken.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func enterExclusively(
    content: PropertyListValue? = nil, overtaking: Overtaking = .suspended,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> PresenceRegistration {
    try ExclusiveEntry(self, content, overtaking, deadline).run()
  }

  /// Registers this process as the exclusive one; see the form without `async`. Cancelling the task
  /// ends the wait with `CancellationError`.
  public func enterExclusively(
    content: PropertyListValue? = nil, overtaking: Overtaking = .suspended,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> PresenceRegistration {
    try await runSuspending { ExclusiveEntry(self, content, overtaking, deadline) }
  }

  // MARK: The role

  enum RoleOutcome {
    case taken(PresencePost)
    case busy(PresenceMember)
    /// The process that was waited for did not leave: a program has removed its registration.
    case removed(PresenceMember)
  }

  /// The role, for events.
  var roleWord: String { place.directory.kind.primitive == .consumer ? "consumer" : "role" }

  /// The value that names the registration with the exclusive role.
  package var role: Value {
    Value(container: container, identifier: name, kind: place.directory.kind)
  }

  /// Returns the id of the registration with the role, or nil if there is none.
  package func roleID() throws -> String? { try Self.id(in: role.snapshot()) }

  private static func id(in snapshot: ValueSnapshot) throws -> String? {
    do {
      return try snapshot.propertyList()?["id"]?.stringValue
    } catch let error as AppGroupError where error.code == .damaged {
      // No process can claim the role by it.
      return nil
    }
  }

  /// Gives the role to a registration, unless another live one has it.
  ///
  /// The registration's file is complete and locked before the role names it, so a reader of the
  /// role sees at once that it is alive.
  ///
  /// - Parameter removedMember: Called when the role seems to be free.
  func takeRole(
    _ record: PresenceRecord, until deadline: ContinuousClock.Instant,
    removedMember: () throws -> PresenceMember? = { nil },
    overtakes: @escaping @Sendable (PresenceMember) -> Bool
  ) throws -> RoleOutcome {
    if let holder = try livingHolder(try roleID(), record), !overtakes(holder) {
      return .busy(holder)
    }
    if let member = try removedMember() { return .removed(member) }
    let directory = SharedDescriptor(try place.directory.openOrMake())
    let post = try PresencePost.stage(record, at: directory.descriptor, in: container.root)
    var hasEntered = false
    defer {
      if !hasEntered { place.discardStaged(record, at: directory.descriptor) }
    }
    let mine = try PropertyListValue.dictionary(["id": .string(record.id)]).binaryBytes()
    let holders = try role.edit(.init(until: deadline)) {
      snapshot -> (Edit, (mayEnter: Bool, other: PresenceMember?)) in
      let other = try livingHolder(try Self.id(in: snapshot), record)
      if let other, !overtakes(other) { return (.keep, (false, other)) }
      return (.replace(mine), (true, other))
    }
    if let other = holders.other {
      guard holders.mayEnter else { return .busy(other) }
      Diagnostics.noteTakeover(
        of: roleWord, path, from: other.holder, in: container.root.path)
      try place.retire(other)
    }
    try place.publish(record, at: directory.descriptor)
    hasEntered = true
    return .taken(post)
  }

  /// Removes the file that names the holder of the role, unless the holder is alive.
  ///
  /// - Parameter lease: The lease of the role.
  /// - Returns: False if a process has the role.
  package func removeRole(_ lease: Lease) throws -> Bool {
    if let id = try roleID(), try place.living(id) != nil { return false }
    _ = try lease.remove(role.fileName, durability: .standard)
    return true
  }

  /// Removes the record of the last registration.
  package func removeLast() throws {
    guard let place = try place.directory.open() else { return }
    try removeIfPresent(PresenceDirectory.last, at: place.rawValue)
  }

  private func livingHolder(_ id: String?, _ record: PresenceRecord) throws -> PresenceMember? {
    guard let id, id != record.id else { return nil }
    return try place.living(id)
  }
}
