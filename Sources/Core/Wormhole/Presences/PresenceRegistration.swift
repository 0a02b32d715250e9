/// The presence of this process, which lasts until it leaves, releases the registration, or ends.
///
/// A child that is forked without exec shares the lock (flock(2)): it keeps the registration alive
/// after its parent's death until it ends, too; others then see it as `unknown`. Programs that are
/// started inherit nothing.
///
/// On etcd it ends with the session of the process, see `Presence`, and a forked child has no part in
/// it.
///
/// ```swift
/// let registration = try container.presence("tills").enter()
/// defer { registration.close() }              // the end of the process would do, too
/// print("present as", registration.id)
/// ```
public final class PresenceRegistration: Sendable {
  /// The presence that the registration belongs to.
  public let presence: Presence
  private let hold: any PresenceHold

  init(_ presence: Presence, _ hold: any PresenceHold) {
    self.presence = presence
    self.hold = hold
  }

  /// The id of the registration among the `members()`; constant as long as it lasts.
  public var id: String { hold.record.id }

  /// Ends the registration: no process sees it any more when this method returns. Further calls
  /// have no effect.
  ///
  /// In a forked child it does nothing, because the registration is the parent's.
  ///
  /// On etcd it waits at most 2 seconds; etcd learns of the rest in the
  /// background. A registration that is only released does not wait.
  ///
  /// - Complexity: Five cheap calls for the record of the last registration, unlink, close. On etcd
  ///   one transaction.
  public func close() { hold.end(asDeath: false) }

  /// Begins to notice when a program removes it, or another process takes its role; once.
  func watch() throws {
    try reporting("watch \"\(presence.name)\"", path: presence.path) { try hold.watch() }
  }

  /// Ends the registration as the death of its process would: the file remains, unlocked, so others
  /// find a process that has ended without leaving. For tests of those others.
  package func abandon() { hold.end(asDeath: true) }

  /// Checks that the registration still exists. One that was removed is created again by itself,
  /// when there was no removal in the container for two seconds.
  ///
  /// On etcd one whose session has ended is made again; an exclusive one only if nobody has had its
  /// role in the meantime.
  ///
  /// - Throws: `AppGroupError`: `invalidToken` after `close()`, `leaseLost` with the new holder if
  ///   another process has taken the role over, or an error of the file system.
  /// - Complexity: A look at the role and at its file. On etcd one transaction.
  public func confirm() throws { try hold.confirm() }

  // MARK: Its end

  /// The instant by which everything has to be over that only the holder may do, unless etcd answers
  /// until then and it moves on; nil in a directory, where holding does not depend on a clock.
  ///
  /// It is nine tenths of the session's lifetime (`ttl=`) after the last sign of life that etcd has
  /// answered was sent. Nobody can enter in its place before the whole lifetime is over. Once the
  /// registration has ended it has passed.
  ///
  /// A process that is stopped cannot keep it. What must not happen twice even then is
  /// changed under the `fence`.
  ///
  /// - Complexity: No system call but for the clock.
  public var deadline: ContinuousClock.Instant? { hold.limits?.deadline }

  /// Calls a closure once, when the registration is lost or may be about to.
  ///
  /// In a directory an exclusive registration is lost when another process has taken the role over from
  /// this one, which was stopped. On etcd it may be lost when etcd has not answered for eight tenths of
  /// the session's lifetime: nobody has to be asked for that, and a tenth is left until `deadline`.
  /// Both say `leaseLost`. The registration may still turn out to hold: `confirm()` tells.
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
  public func onLoss(_ handler: @escaping @Sendable (AppGroupError) -> Void) {
    hold.lossHandlers.add(handler)
    hold.watchLoss()
  }

  /// Why the registration is lost, or may be about to; nil if it is not. Asks nobody who could be slow
  /// to answer.
  package var loss: AppGroupError? { hold.loss }

  /// The fence of the exclusive role: changes that have it are refused once another process has
  /// entered, however late they come. After entering again, which `confirm()` may do, it is a new one.
  ///
  /// ```swift
  /// let role = try await container.presence("cleaner").enterExclusively()
  /// try await container.value("cleaned").update(while: role.fence) { $0 = "all" }
  /// ```
  ///
  /// Only an exclusive registration has one.
  public var fence: Presence.Fence {
    precondition(hold.record.isExclusive, "only an exclusive registration has a fence")
    return Presence.Fence(presence: presence, number: hold.fenceNumber)
  }

  /// What a change checks that only its owner may make, so that a process that was stopped or cut off for
  /// too long changes nothing. It is new after it has entered again; in a directory there is none.
  ///
  /// - Throws: As `confirm`, for an end that this process knows of already.
  package var condition: (any EngineCondition)? { get throws { try hold.condition } }
}
