package import SystemCalls

/// A process that holds a lease, or took one away.
public struct LeaseHolder: Sendable, Hashable {
  /// What the process is doing, as far as /proc tells.
  public enum State: String, Sendable, Hashable {
    case running
    /// Stopped by a signal or a debugger.
    case stopped
    /// It has ended.
    case gone
    /// It lives where this process cannot see it: another namespace or another machine.
    case unknown
  }

  /// Its process number, in the namespace it lives in; nil when even that is unknown.
  public let processID: Int32?
  /// The name of its program, at most 15 bytes; nil when it is not visible from here.
  public let program: String?
  /// What it is doing.
  public let state: State
  /// For how long it has held the lease, as far as is known.
  public let held: Duration?

  init(processID: Int32?, program: String?, state: State, held: Duration?) {
    self.processID = processID
    self.program = program
    self.state = state
    self.held = held
  }

  package init(identity: ProcessIdentity, held: Duration?) {
    let status = identity.status
    self.init(
      processID: identity.processID, program: status?.program,
      state: identity.isVisible ? State(status) : .unknown, held: held)
  }

  package init(visible processID: Int32, held: Duration?) {
    let status = ProcessStatus.of(processID)
    self.init(processID: processID, program: status?.program, state: State(status), held: held)
  }
}

extension LeaseHolder.State {
  init(_ status: ProcessStatus?) {
    guard let status, !status.isDead else {
      self = .gone
      return
    }
    self = status.isStopped ? .stopped : .running
  }
}

extension LeaseHolder: CustomStringConvertible {
  /// "process 4711 (swift-daemon), stopped, since 3.2 s".
  public var description: String {
    guard let processID else { return "a process that cannot be seen from here" }
    let name = program.map { " (\($0))" } ?? ""
    let since = held.map { ", since \($0.tenthsOfSeconds) s" } ?? ""
    return "process \(processID)\(name), \(state.rawValue)\(since)"
  }
}

extension Duration {
  var tenthsOfSeconds: String {
    let (seconds, attoseconds) = components
    return "\(seconds).\(attoseconds / 100_000_000_000_000_000)"
  }
}
