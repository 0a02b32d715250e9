public import WormholePropertyLists
package import WormholeSystem

/// The processes that are present under a name: exact, without heartbeats, and updated at the
/// moment of a process's death.
///
/// In a directory a registration is a file that its process has locked. The kernel releases the lock when the
/// process ends, however it ends, and notifies watchers. No process polls, and no dead process
/// counts as alive because its number was reused or the directory was copied.
///
/// One change causes no event: stopping or continuing a process. Each look reads this state from
/// /proc, so a change appears at the next look, and no observer is called.
///
/// On etcd a registration is a key that ends with the session of its process: at once if the
/// process exits; otherwise once etcd has not heard from it for the session's lifetime, 5 seconds
/// by default. A process that was stopped or cut off for longer has lost its registration by then,
/// and enters again when it continues. Every method then waits for a round trip to the cluster, at
/// most 10 seconds, and throws `unreachable` after that.
///
/// ```swift
/// let tills = container.presence("tills")
/// let here = try tills.enter(content: ["hall": 3])
/// for await members in try tills.changes() { print(members.map(\.program)) }
/// here.close()
/// ```
public struct Presence: Sendable {
  /// The container that the name belongs to.
  public let container: SharedContainer
  /// The name.
  public let name: String

  package let kind: NameKind
  let store: any PresenceStore

  /// The largest size of a registration's file in bytes, including its `content`: 64 KiB.
  public static let maximumBytes = PresenceRecord.limits.maximumBytes

  package init(container: SharedContainer, name: String, kind: NameKind = .presence) {
    self.container = container
    self.name = name
    self.kind = kind
    store = container.engine(as: (any PresenceEngine).self)
      .presence(name, kind, in: container)
  }

  /// The path of the directory of registrations, whether or not it exists; on etcd a description of
  /// its keys.
  public var path: String { store.path }

  var title: PresenceTitle { PresenceTitle(name: name, kind: kind) }

  /// Registers this process until `close()`, until the registration is released, or until the
  /// process ends. A process may have several registrations.
  ///
  /// A registration outlives the removal of its file or directory, or of the whole container: two
  /// seconds later it is created again, in the directory that then exists.
  ///
  /// - Parameter content: A small value for other processes; it never changes.
  /// - Throws: `WormholeError.Code.unsupportedValue` for content that is too large or not a
  ///   property list, or an error of the file system.
  /// - Complexity: Create, lock, write, rename; and a watch on the directory.
  public func enter(content: PropertyListValue? = nil) throws -> PresenceRegistration {
    try enter(content: content, tidies: true)
  }

  /// Registers this process; see the other form.
  ///
  /// - Parameter tidies: Whether to remove the leftovers of dead processes first, which is a look at all
  ///   registrations.
  package func enter(content: PropertyListValue?, tidies: Bool) throws -> PresenceRegistration {
    let registration = try enter(content, tidies: tidies)
    try registration.watch()
    return registration
  }

  /// Registers this process; the registration is watched once it is needed for long.
  ///
  /// - Parameter tidies: Whether to remove the leftovers of dead processes first.
  func enter(_ content: PropertyListValue?, tidies: Bool) throws -> PresenceRegistration {
    let record = PresenceRecord(isExclusive: false, content: content, host: container.engine.host)
    return try reporting(title.action, path: path) {
      try check(record)
      return PresenceRegistration(self, record, try store.enter(record, tidies: tidies))
    }
  }

  /// Returns the present processes, the oldest first.
  ///
  /// - Throws: `WormholeError` for an error of the file system, and `WormholeError.Code.tooLarge`
  ///   for a directory with more than 10,000 files.
  /// - Complexity: Opens and lists one directory. For each member: open, fstat, flock, read and
  ///   close of its file, and a look in /proc.
  public func members() throws -> [PresenceMember] {
    try look().live
  }

  /// Returns whether a process is present; if not, the last one.
  ///
  /// - Throws: As `members`.
  public func status() throws -> PresenceStatus {
    let listing = try look()
    if let member = listing.live.first(where: { $0.state == .running }) { return .running(member) }
    if let member = listing.live.first(where: { $0.state == .unknown }) { return .unknown(member) }
    if let member = listing.live.first { return .suspended(member) }
    return try reporting("look who was present", path: path) { try store.last(after: listing) }
  }

  /// Returns the present processes without those that the caller knows by their ids.
  ///
  /// - Complexity: As `members`, for the others.
  package func members(without isKnown: (String) -> Bool) throws -> [PresenceMember] {
    try look(without: isKnown).live
  }

  /// Lists the present processes: none if the name was never used.
  private func look(without isKnown: (String) -> Bool = { _ in false }) throws -> PresenceListing {
    try reporting("look who is present", path: path) { try store.look(without: isKnown) }
  }

  /// Returns the fence of an exclusive registration by its number.
  ///
  /// - Parameter number: The `Fence.number` of the process that has entered.
  public func fence(_ number: UInt64) -> Fence { Fence(store.proof(of: number), number) }

  func check(_ record: PresenceRecord) throws {
    do throws(PropertyListError) {
      _ = try record.bytes()
    } catch {
      throw WormholeError(
        .unsupportedValue, title.action, path: path,
        reason: "nobody would accept its content: \(error.reason)",
        remedy: "keep this short; put the rest in a value")
    }
  }
}

extension SharedContainer {
  /// Returns the presence under a name; no file is touched before the first registration or
  /// observation.
  ///
  /// - Parameter name: Any string, byte for byte.
  public func presence(_ name: String) -> Presence { Presence(container: self, name: name) }

  /// Returns the names under which a process has entered, unordered.
  ///
  /// - Throws: `WormholeError` for an error of the file system.
  public func presenceNames() throws -> [String] {
    try identifiers(of: .presence)
  }
}

extension OwnNames {
  /// Returns the presence under a name of the package; no file is touched before the first use.
  package func presence(_ name: String) -> Presence {
    Presence(container: container, name: name, kind: .ownPresence)
  }

  /// Calls a closure whenever the package may have a new name of a presence.
  ///
  /// - Parameter signal: Called on a thread that must not be blocked, so it must be short.
  /// - Returns: The watch, which lasts until it is cancelled or released.
  package func watchPresenceNames(
    _ signal: @escaping @Sendable () -> Void
  ) throws -> any Cancelling {
    try reporting("watch the names of presences", path: container.location) {
      try ThreadShortage.ruleOut()
      return try container.engine(as: (any PresenceEngine).self)
        .watchOwnPresenceNames(signal)
    }
  }
}

extension Presence {
  /// The registrations that another process may take over.
  ///
  /// ```swift
  /// // One process at a time; a stopped one keeps the role.
  /// let role = try await container.presence("cleaner")
  ///   .enterExclusively(overtaking: .nobody, until: .now + .seconds(5))
  /// try role.confirm()                          // before an action that must not happen twice
  /// ```
  public enum Overtaking: Sendable, Hashable {
    /// The registration of a process on this machine that has been stopped for at least 50 ms; it
    /// learns that when it is continued.
    case suspended
    /// No registration of a live process.
    case nobody
  }

  /// Registers this process as the exclusive one.
  ///
  /// Only one registration has the role at a time. Other processes wait, and enter when it leaves
  /// or dies. Before an action that two processes must not take at the same time, call `confirm()`,
  /// because the process may have been stopped and overtaken just before.
  ///
  /// - Parameters:
  ///   - content: A small value for other processes.
  ///   - overtaking: Whether a suspended process loses the role to this one.
  ///   - deadline: The latest instant to wait; an instant in the past means "only if the role is
  ///     free". By default 10 seconds from now.
  /// - Throws: `WormholeError.Code.timedOut` with the present process as its `holder`; otherwise as
  ///   `enter`.
  /// - Complexity: As `enter`, and one update of a value. Waits for an event; checks once a second
  ///   whether a stopped process can be overtaken.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func enterExclusively(
    content: PropertyListValue? = nil, overtaking: Overtaking = .suspended,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> PresenceRegistration {
    try watchedEntry(content, overtaking, until: deadline).run()
  }

  /// Registers this process as the exclusive one; see the form without `async`. Cancelling the task
  /// ends the wait with `CancellationError`.
  public func enterExclusively(
    content: PropertyListValue? = nil, overtaking: Overtaking = .suspended,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> PresenceRegistration {
    try await runSuspending { watchedEntry(content, overtaking, until: deadline) }
  }

  /// Returns the wait of `enterExclusively`.
  private func watchedEntry(
    _ content: PropertyListValue?, _ overtaking: Overtaking,
    until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<PresenceRegistration> {
    // All attempts together wait this long, not each one.
    let deadline = deadline ?? .now + SharedContainer.standardWait
    var entry = exclusiveEntry(content, overtaking, until: deadline)
    return StepwiseWait {
      try entry.step().then { registration in
        try registration.watch()
        guard registration.loss != nil else { return .done(registration) }
        // Stopped just after it had entered, and overtaken: it has begun nothing.
        registration.close()
        entry = exclusiveEntry(content, overtaking, until: deadline)
        return .again
      }
    }
  }

  /// Returns the wait for the exclusive role; the registration is watched once needed for long.
  ///
  /// - Parameter isGone: See `PresenceStore.exclusiveEntry`.
  func exclusiveEntry(
    _ content: PropertyListValue? = nil, _ overtaking: Overtaking = .suspended,
    until deadline: ContinuousClock.Instant?, isGone: (() throws -> Bool)? = nil
  ) -> sending any Waiting<PresenceRegistration> {
    entry(isExclusive: true, content) {
      store.exclusiveEntry(
        $0, overtaking, until: deadline ?? .now + SharedContainer.standardWait, isGone: isGone)
    }
  }

  /// Returns the wait of a registration for the processes in its way.
  ///
  /// - Parameter begin: Returns the engine's wait for a record.
  package func entry(
    isExclusive: Bool, _ content: PropertyListValue? = nil,
    _ begin: (PresenceRecord) -> any Waiting<any PresenceHold>
  ) -> sending any Waiting<PresenceRegistration> {
    let record = PresenceRecord(
      isExclusive: isExclusive, content: content, host: container.engine.host)
    let entry = begin(record)
    var isChecked = false
    var meter = WaitMeter()
    return StepwiseWait {
      try meter.take(title.role, path: path, in: container.place) {
        try reporting(title.action, path: path) {
          if !isChecked { try check(record) }
          isChecked = true
          return try entry.step().then { .done(PresenceRegistration(self, record, $0)) }
        }
      }
    }
  }
}
