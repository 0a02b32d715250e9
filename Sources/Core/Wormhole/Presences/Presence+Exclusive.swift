public import WormholePropertyLists
import WormholeSystem

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
    /// The registration of a process of this machine that has been stopped for at least 50 ms; it
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
  /// - Throws: `AppGroupError`: `timedOut` with the present process as its `holder`; otherwise as
  ///   `enter`.
  /// - Complexity: As `enter`, and one update of a value. Waits for an event; checks once a second
  ///   whether a stopped process can be overtaken.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func enterExclusively(
    content: PropertyListValue? = nil, overtaking: Overtaking = .suspended,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> PresenceRegistration {
    let registration = try exclusiveEntry(content, overtaking, until: deadline).run()
    try registration.watch()
    return registration
  }

  /// Registers this process as the exclusive one; see the form without `async`. Cancelling the task
  /// ends the wait with `CancellationError`.
  public func enterExclusively(
    content: PropertyListValue? = nil, overtaking: Overtaking = .suspended,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> PresenceRegistration {
    let registration = try await runSuspending {
      exclusiveEntry(content, overtaking, until: deadline)
    }
    try registration.watch()
    return registration
  }

  /// Returns the wait of `enterExclusively`; the registration is watched once it is needed for long.
  func exclusiveEntry(
    _ content: PropertyListValue? = nil, _ overtaking: Overtaking = .suspended,
    until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<PresenceRegistration> {
    let record = PresenceRecord(isExclusive: true, content: content, host: store.host)
    let entry = store.exclusiveEntry(
      record, overtaking, until: deadline ?? .now + Value.standardWait)
    var isChecked = false
    var meter = WaitMeter()
    return StepwiseWait {
      try meter.take(title.role, path: path, in: container.place) {
        try reporting(title.action, path: path) {
          if !isChecked { try check(record) }
          isChecked = true
          return try entry.step().then { .done(PresenceRegistration(self, $0)) }
        }
      }
    }
  }
}
