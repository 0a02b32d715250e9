public import FoundationEssentials
public import PropertyLists
package import SystemCalls

/// A process that is present under a name, or the last one that was.
public struct PresenceMember: Sendable, Hashable {
  /// What the process is doing, as far as /proc tells.
  public enum State: String, Sendable, Hashable {
    case running
    /// Stopped by a signal or a debugger.
    case suspended
    /// Not here any more.
    case gone
    /// Here, for its lock is held, but out of sight: in another namespace, on another machine, or
    /// the lock was left to a child that it forked.
    case unknown
  }

  /// Unique among all registrations, and the same as long as the registration lasts.
  public let id: String
  /// Its process number, in the namespace it lives in.
  public let processID: Int32
  /// The name of its program, at most 15 bytes.
  public let program: String
  /// What it was doing when somebody looked.
  public let state: State
  /// When it entered, by the clock of its machine.
  public let since: Date
  /// Whether it is, or wants to be, the only one.
  public let isExclusive: Bool
  /// What it said when it entered.
  public let content: PropertyListValue?

  package let identity: ProcessIdentity
  /// When it entered, in nanoseconds on the clock that cannot be set (`bootTimeNanoseconds`).
  package let enteredAt: UInt64

  init(_ record: PresenceRecord, state: State) {
    id = record.id
    processID = record.identity.processID
    program = record.program
    self.state = state
    since = record.since
    isExclusive = record.isExclusive
    content = record.content
    identity = record.identity
    enteredAt = record.enteredAt
  }

  /// Whether it is stopped now; nil when it has ended, or is out of sight. Costs reading one file of
  /// /proc, and says nothing of whether it is still present.
  package var isStopped: Bool? {
    guard state != .unknown, let status = ProcessStatus.of(processID),
      status.startTicks == identity.startTicks, !status.isDead
    else { return nil }
    return status.isStopped
  }

  /// Whether it is a registration of this very process.
  public var isOwnProcess: Bool { identity == .current }

  /// For errors that name who is in the way.
  package var holder: LeaseHolder {
    let states: [State: LeaseHolder.State] = [
      .running: .running, .suspended: .stopped, .gone: .gone,
    ]
    let age = Date().timeIntervalSince(since)
    return LeaseHolder(
      processID: processID, program: program, state: states[state] ?? .unknown,
      held: age >= 0 && age < 3e9 ? .milliseconds(Int64(age * 1_000)) : nil)
  }
}

extension PresenceMember: CustomStringConvertible {
  /// "process 4711 (swift-daemon), suspended".
  public var description: String { "process \(processID) (\(program)), \(state.rawValue)" }
}

/// Who is, or was, present under a name, in one word.
public enum PresenceStatus: Sendable, Hashable {
  /// Somebody is here and runs; of several the oldest.
  case running(PresenceMember)
  /// Whoever is here is stopped.
  case suspended(PresenceMember)
  /// Somebody is here, and whether it runs cannot be seen from here.
  case unknown(PresenceMember)
  /// Nobody is here any more: who was last, if its record can be read, and when it left; nil for
  /// one that was killed.
  case gone(last: PresenceMember?, ended: Date?)
  /// Nobody was ever here.
  case neverSeen
}
