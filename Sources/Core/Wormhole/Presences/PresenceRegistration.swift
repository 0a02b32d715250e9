/// The presence of this process, which lasts until it leaves, releases the registration, or ends.
///
/// A child that is forked without exec shares the lock (flock(2)): it keeps the registration alive
/// after its parent's death until it ends, too; other processes then see it as `unknown`. Started
/// programs do not inherit the lock.
///
/// On etcd it ends with the session of the process, see `Presence`, and a forked child does not
/// share it.
///
/// ```swift
/// let registration = try container.presence("tills").enter()
/// defer { registration.close() }              // the end of the process would do, too
/// print("present as", registration.id)
/// ```
public final class PresenceRegistration: Sendable {
  /// The presence that the registration belongs to.
  public let presence: Presence
  private let record: PresenceRecord
  private let hold: any PresenceHold

  init(_ presence: Presence, _ record: PresenceRecord, _ hold: any PresenceHold) {
    self.presence = presence
    self.record = record
    self.hold = hold
  }

  /// The id of the registration among the `members()`; constant as long as it lasts.
  public var id: String { record.id }

  /// Ends the registration: no process sees it when this method has returned. Further calls have no
  /// effect.
  ///
  /// In a forked child it does nothing, because the registration is the parent's.
  ///
  /// On etcd it waits at most 2 seconds, and then continues in the background. Only releasing a
  /// registration does not wait.
  ///
  /// - Complexity: Five cheap calls for the record of the last registration, unlink, close. On etcd
  ///   one transaction.
  public func close() { end(asDeath: false) }

  package func end(asDeath: Bool) { hold.end(asDeath: asDeath) }

  /// Begins to notice when a program removes it, or another process takes its role; once.
  func watch() throws {
    try reporting("watch \"\(presence.name)\"", path: presence.path) { try hold.watch() }
  }

  /// Ends the registration as the death of its process would: the file remains, unlocked, so other
  /// processes find one that has ended without leaving. For tests of those processes.
  package func abandon() { end(asDeath: true) }

  /// Checks that the registration still exists. A removed registration is created again
  /// automatically, once there has been no removal in the container for two seconds.
  ///
  /// On etcd a registration whose session has ended is made again; an exclusive one only if no
  /// other process has had its role in the meantime.
  ///
  /// - Throws: `WormholeError.Code.invalidToken` after `close()`, `.leaseLost` with the new holder
  ///   if another process has taken the role over, or an error of the file system.
  /// - Complexity: A look at the role and at its file. On etcd one transaction.
  public func confirm() throws { try confirm(until: nil) }

  func confirm(until deadline: ContinuousClock.Instant?) throws {
    try hold.confirm(until: deadline)
  }

  // MARK: Its end

  /// The instant by which the holder must stop what only it may do, unless an answer from etcd
  /// moves it on; nil in a directory, where holding does not depend on a clock.
  ///
  /// It is nine tenths of the session's lifetime (`ttl=`) after sending the last renewal that etcd
  /// has answered. No other process can enter before the whole lifetime is over. When the
  /// registration has ended, the deadline has passed.
  ///
  /// A stopped process cannot meet it. Use the `fence` for changes that must not happen twice even
  /// then.
  ///
  /// - Complexity: No system call except for the clock.
  public var deadline: ContinuousClock.Instant? { hold.facts.deadline }

  /// Calls a closure once, when the registration is lost or may be about to.
  ///
  /// In a directory an exclusive registration is lost when another process has taken the role over
  /// while this one was stopped. On etcd it may be lost when etcd has not answered for eight tenths
  /// of the session's lifetime. That needs no request, and leaves a tenth until `deadline`. Both
  /// report `leaseLost`. The registration may still hold: `confirm()` finds out.
  ///
  /// ```swift
  /// let role = try await container.presence("cleaner").enterExclusively()
  /// let work = Task { while !Task.isCancelled { try await Task.sleep(for: .seconds(1)) } }
  /// role.onLoss { _ in work.cancel() }
  /// ```
  ///
  /// - Parameter handler: Called on a thread that may block; at once if the registration is lost.
  ///   Released with the registration, and not called by `close()`.
  /// - Complexity: On etcd a timer as long as the registration lasts.
  public func onLoss(_ handler: @escaping @Sendable (WormholeError) -> Void) {
    hold.onLoss(handler)
  }

  /// A descriptor for a program that this process starts (`ChildProcess.init`, `inheriting`): as long as the
  /// program, or one that it has started, has it open, the process counts as present; nil on etcd, and
  /// when the registration has ended.
  package var inheritable: Int32? { hold.facts.descriptor }

  /// Why the registration is lost, or may be about to be; nil if it is not. Makes no request that
  /// could be slow.
  package var loss: WormholeError? { hold.loss }

  /// The fence of the exclusive role: changes that have it are refused once another process has
  /// entered, however late they come. Entering again, as `confirm()` may do, makes a new fence.
  ///
  /// ```swift
  /// let role = try await container.presence("cleaner").enterExclusively()
  /// try await container.value("cleaned").update(while: role.fence) { $0 = "all" }
  /// ```
  ///
  /// Only an exclusive registration has one.
  public var fence: Fence {
    precondition(record.isExclusive, "only an exclusive registration has a fence")
    return presence.fence(hold.facts.fence)
  }
}
