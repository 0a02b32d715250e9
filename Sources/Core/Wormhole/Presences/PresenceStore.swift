import Synchronization
import WormholeSystem

/// The registrations of one name: the part of a presence that depends on the engine of the
/// container. Each engine keeps the promises of `Presence` in its own way.
package protocol PresenceStore: Located {
  /// Looks who is present.
  ///
  /// - Parameter isKnown: Whether the caller needs no look at the registration with an id; where
  ///   looking at each costs nothing more, the result may contain it anyway.
  func look(without isKnown: (String) -> Bool) throws -> PresenceListing

  /// Returns the process that was present last.
  ///
  /// - Parameter listing: A listing that has found no process.
  /// - Returns: `gone` or `neverSeen`.
  func last(after listing: PresenceListing) throws -> PresenceStatus

  /// Enters, without the exclusive role; the registration is not watched yet. See `Presence.enter`.
  func enter(_ record: PresenceRecord, tidies: Bool) throws -> any PresenceHold

  /// Returns the wait for the exclusive role. Only one thread at a time takes a step.
  ///
  /// - Parameter isGone: Nil if the process enters at once. Otherwise it prepares something in the role
  ///   first, see `PresenceHold.confirm`; and this returns whether a program has removed that.
  func exclusiveEntry(
    _ record: PresenceRecord, _ overtaking: Presence.Overtaking,
    until deadline: ContinuousClock.Instant, isGone: (() throws -> Bool)?
  ) -> any Waiting<any PresenceHold>

  /// Begins to watch the members.
  ///
  /// - Parameter signal: Called when members may have come or gone, and again after a look that has
  ///   failed; on a thread that must not be blocked.
  func watch(_ signal: @escaping @Sendable () -> Void) throws -> any MembershipWatch

  /// Returns the proof that the exclusive role belongs to an entering.
  func proof(of number: UInt64) -> RoleProof
}

/// The live and the dead registrations, each in the order of entering.
package struct PresenceListing: Sendable {
  package var live: [PresenceMember] = []
  /// The registrations of dead processes that have not been removed yet.
  package var dead: [PresenceMember] = []

  package init(live: [PresenceMember] = [], dead: [PresenceMember] = []) {
    self.live = live
    self.dead = dead
  }
}

/// One registration of this process, which ends at the latest when it is released.
package protocol PresenceHold: AnyObject, Sendable {
  /// Ends it; further calls have no effect.
  ///
  /// - Parameter asDeath: Whether other processes should find what a dead process leaves behind.
  func end(asDeath: Bool)

  /// Checks that it still exists; see `PresenceRegistration.confirm`.
  ///
  /// The first call, or that of `watch`, completes the entering of a process that has prepared what it
  /// needs for the role. Until then another process takes the role over after two seconds, wherever
  /// this one runs; then this throws `leaseLost`. On etcd the session is such a term.
  func confirm(until deadline: ContinuousClock.Instant?) throws

  /// What is known of it without a request or a system call.
  var facts: HoldFacts { get }

  /// See `PresenceRegistration.loss`.
  var loss: WormholeError? { get }

  /// See `PresenceRegistration.onLoss`.
  func onLoss(_ handler: @escaping LossHandlers.Handler)

  /// Begins to notice when a program removes it, or another process takes its role.
  func watch() throws
}

/// What the holder of a registration knows of it.
package struct HoldFacts: Sendable {
  /// The number of its last entering.
  let fence: UInt64
  /// See `PresenceRegistration.deadline`.
  let deadline: ContinuousClock.Instant?
  /// See `PresenceRegistration.inheritable`.
  let descriptor: Int32?

  package init(
    fence: UInt64, deadline: ContinuousClock.Instant? = nil, descriptor: Int32? = nil
  ) {
    (self.fence, self.deadline, self.descriptor) = (fence, deadline, descriptor)
  }
}

/// The handlers of the loss of a registration, each of which is called once.
package final class LossHandlers: Sendable {
  package typealias Handler = @Sendable (WormholeError) -> Void

  private let handlers = Mutex<[Handler]>([])

  package init() {}

  package var isEmpty: Bool { handlers.withLock(\.isEmpty) }

  package func add(_ handler: @escaping Handler) { handlers.withLock { $0.append(handler) } }

  /// Calls all handlers, and forgets them.
  package func report(_ loss: WormholeError) {
    let all = handlers.withLock { exchange(&$0, with: []) }
    guard !all.isEmpty else { return }
    Blocking.urgently { for handler in all { handler(loss) } }
  }
}

/// The end of a registration that depends on a clock.
package struct HoldLimits: Sendable {
  /// When its holder should stop.
  package let stop: ContinuousClock.Instant
  /// When it has to have stopped.
  package let deadline: ContinuousClock.Instant

  package init(stop: ContinuousClock.Instant, deadline: ContinuousClock.Instant) {
    self.stop = stop
    self.deadline = deadline
  }

  /// Both have passed.
  package static var passed: HoldLimits {
    // Not now, which the comparing thread's clock may not have reached.
    let past = ContinuousClock.now - .seconds(1)
    return HoldLimits(stop: past, deadline: past)
  }
}

/// The watch of one observer: notices that members may have come or gone, and looks at them.
package protocol MembershipWatch: Watching {
  /// Looks at the members; never returns an older state than the look before.
  ///
  /// - Parameter last: The members that the last look found.
  func look(last: [PresenceMember]?) throws -> PresenceListing

  /// Removes the leftovers of dead members; the observer has been notified of their deaths.
  func retire(_ dead: [PresenceMember])
}

/// The name of a presence in messages.
package struct PresenceTitle: Sendable {
  package let name: String
  package let kind: NameKind

  package init(name: String, kind: NameKind) {
    self.name = name
    self.kind = kind
  }

  private var isConsumer: Bool { kind.primitive == .consumer }

  /// The action of a process that enters: the consumer of a queue is present as such.
  package var action: String { (isConsumer ? "consume" : "enter") + " \"\(name)\"" }

  /// The role, for events.
  package var role: String { isConsumer ? "consumer" : "role" }

  /// The error of a process that has waited for another one in vain.
  package func busy(_ member: PresenceMember, path: String) -> WormholeError {
    WormholeError(
      .timedOut, action + (isConsumer ? "" : " exclusively"), path: path,
      reason: isConsumer
        ? "only one process consumes it at a time; \(member.holder.holding)"
        : member.holder.holding,
      remedy: "wait longer, or end that process", holder: member.holder)
  }

  /// The error of a registration that was closed.
  package func ended(path: String) -> WormholeError {
    WormholeError(
      .invalidToken, "confirm being present", path: path, reason: "it was ended",
      remedy: "enter again")
  }

  /// The error of a registration that may end soon, because etcd has not heard from it lately.
  package func unheard(path: String) -> WormholeError {
    WormholeError(
      .leaseLost, "stay present", path: path,
      reason: "etcd has not answered for most of the session's lifetime (ttl=), so it may end",
      remedy: "stop what only its holder may do, and enter again when etcd can be reached")
  }

  /// The error of a change that comes after the end of its role.
  package func fenced(path: String) -> WormholeError {
    WormholeError(
      .leaseLost, "change anything while \(role) \"\(name)\" is held", path: path,
      reason: "it has ended, or another process has it; nothing of the change is visible",
      remedy: "enter again, and repeat the change")
  }

  /// The error of a registration that has lost its role.
  package func overtaken(by holder: LeaseHolder?, path: String) -> WormholeError {
    let taker = holder.map { "\($0)," } ?? "another process"
    return WormholeError(
      .leaseLost, "confirm being the only one", path: path,
      reason: "\(taker) has taken the role over", remedy: "enter again", holder: holder)
  }
}

/// The process that a waiter has seen stopped, or about to enter, and since when: it may lose its role.
package final class StoppedHolders: Sendable {
  private struct Seen {
    let state: String
    let since: ContinuousClock.Instant
    var isPaused = false
    var due: ContinuousClock.Instant
  }

  private let seen = Mutex<Seen?>(nil)

  package init() {}

  /// When the holder of the last look may lose its role; nil if it may keep it.
  package var due: ContinuousClock.Instant? { seen.withLock { $0?.due } }

  /// Returns whether a holder has been stopped, or about to enter, for long enough.
  ///
  /// - Parameters:
  ///   - isWorkStopped: whether a command works for the holder, and all its processes are stopped.
  ///   - path: the place of the role.
  package func mayOvertake(
    _ member: PresenceMember, _ overtaking: Presence.Overtaking, isWorkStopped: Bool = false,
    at path: @autoclosure () -> String = ""
  ) -> Bool {
    let isStopped = overtaking == .suspended && (isWorkStopped || member.state == .suspended)
    // Entering is a short step, wherever its process runs. One that is seen to run completes it.
    let isShort = member.isEntering && member.state != .running
    return seen.withLock { seen in
      guard isStopped || isShort else {
        seen = nil
        return false
      }
      let state = "\(member.id) \(member.isEntering)"
      let known = seen.flatMap { $0.state == state ? $0 : nil }
      var next = known ?? Seen(state: state, since: .now, due: .now)
      if isWorkStopped, isStopped, !next.isPaused,
        ProcessStatus.of(member.processID)?.isInBackground == true
      {
        next.isPaused = true
        Diagnostics.notePatience(
          with: member.holder, forThe: "role", path(), lasting: LeaseRequest.graceAtTerminal)
      }
      let grace = next.isPaused ? LeaseRequest.graceAtTerminal : LeaseRequest.grace
      let terms = [isStopped ? grace : nil, isShort ? LeaseDeclaration.standardTerm : nil]
      next.due = next.since + (terms.compactMap(\.self).min() ?? .zero)
      seen = next
      return next.due <= .now
    }
  }
}

/// The engine's operations for presences.
package protocol PresenceEngine: ContainerEngine {
  func presence(_ name: String, _ kind: NameKind, in container: SharedContainer)
    -> any PresenceStore
  /// Calls a closure whenever the package may have a new name of a presence.
  func watchOwnPresenceNames(_ signal: @escaping @Sendable () -> Void) throws -> any Cancelling
}
