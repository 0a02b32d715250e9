package import WormholeSystem

/// A process that holds a lease, or took one over.
///
/// ```swift
/// import Wormhole
/// import WormholeInspection
///
/// let container = try SharedContainer(group: "group.com.example.cinema")
/// for lease in try container.report().leases {
///   print(lease.identifier, lease.holder, lease.holder.state == .stopped ? "is stopped" : "")
/// }
/// ```
public struct LeaseHolder: Sendable, Hashable {
  /// The state of the process, as far as /proc shows it.
  ///
  /// ```swift
  /// func isInTheWay(_ holder: LeaseHolder) -> Bool { holder.state == .stopped }
  /// ```
  public enum State: String, Sendable, Hashable {
    /// It runs, or can run at any time.
    case running
    /// Stopped by a signal or a debugger.
    case stopped
    /// It has ended.
    case gone
    /// This process cannot see it, because it is in another namespace or on another machine.
    case unknown
  }

  /// Its process number, in its own namespace; nil if even that is unknown.
  public let processID: Int32?
  /// The name of its program, at most 15 bytes; nil if it is not visible from here.
  public let program: String?
  /// The name of its machine, if the container is on etcd.
  public let host: String?
  /// The state of the process.
  public let state: State
  /// The time for which it has held the lease, as far as is known.
  public let held: Duration?

  package init(
    processID: Int32?, program: String?, host: String? = nil, state: State, held: Duration?
  ) {
    self.processID = processID
    self.program = program
    self.host = host
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
  /// "process 4711 (swift-daemon), stopped, for 3.2 s".
  public var description: String {
    guard let processID else { return "a process that cannot be seen from here" }
    let name = program.map { " (\($0))" } ?? ""
    let place = host.map { " on \($0)" } ?? ""
    let time = held.map { ", for \($0.tenthsOfSeconds) s" } ?? ""
    return "process \(processID)\(name)\(place), \(state.rawValue)\(time)"
  }
}

extension Duration {
  package var tenthsOfSeconds: String {
    let (seconds, attoseconds) = components
    return "\(seconds).\(attoseconds / 100_000_000_000_000_000)"
  }
}
