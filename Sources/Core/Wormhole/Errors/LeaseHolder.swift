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
public struct LeaseHolder: Sendable, Hashable, Encodable {
  /// The state of the process, as far as /proc shows it.
  ///
  /// ```swift
  /// func isInTheWay(_ holder: LeaseHolder) -> Bool { holder.state == .stopped }
  /// ```
  public enum State: String, Sendable, Hashable, Encodable {
    /// It runs, or can run at any time.
    case running
    /// Stopped by a signal or a debugger.
    case stopped
    /// It has ended. Its parent may not have waited for it.
    case gone
    /// Whether it runs cannot be seen from here, because it is in another namespace or on another machine,
    /// or because /proc hides it.
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
  /// Whether it has ended, and its parent has not waited for it.
  private let isZombie: Bool

  private enum CodingKeys: String, CodingKey {
    case program, host, state
    case processID = "process"
    case held = "heldSeconds"
  }

  package init(
    processID: Int32?, program: String?, host: String? = nil, state: State, held: Duration?,
    isZombie: Bool = false
  ) {
    self.processID = processID
    self.program = program
    self.host = host
    self.state = state
    self.held = held
    self.isZombie = isZombie
  }

  package init(identity: ProcessIdentity, held: Duration?) {
    self.init(identity.processID, identity.status, held, hasEnded: identity.hasEnded)
  }

  package init(visible processID: Int32, held: Duration?) {
    self.init(
      processID, ProcessStatus.of(processID), held, hasEnded: ProcessStatus.isMissing(processID))
  }

  /// - Parameter hasEnded: Evaluated only without a status.
  private init(
    _ processID: Int32, _ status: ProcessStatus?, _ held: Duration?,
    hasEnded: @autoclosure () -> Bool
  ) {
    let state: State =
      if let status {
        status.isDead ? .gone : status.isStopped ? .stopped : .running
      } else {
        hasEnded() ? .gone : .unknown
      }
    self.init(
      processID: processID, program: status?.program, state: state, held: held,
      isZombie: status?.isDead == true)
  }
}

extension LeaseHolder: CustomStringConvertible {
  /// "process 4711 (swift-daemon), which is stopped".
  public var description: String {
    guard let processID else { return "a process that cannot be seen from here" }
    let name = program.map { " (\($0))" } ?? ""
    let place = host.map { " on \($0)" } ?? ""
    return "process \(processID)\(name)\(place), \(clause)"
  }

  private var clause: String {
    switch state {
    case .running: "which is running"
    case .stopped: "which is stopped"
    case .gone:
      isZombie ? "which has ended, but its parent has not waited for it" : "which has ended"
    case .unknown: "whose state cannot be seen from here"
    }
  }

  /// "held for 3.2 s by process 4711 (swift-daemon), which is stopped": the time is the lease's,
  /// not the state's.
  package var holding: String {
    "held\(held.map { " for \($0.tenthsOfSeconds) s" } ?? "") by \(self)"
  }
}

extension Duration {
  package var tenthsOfSeconds: String {
    let (seconds, attoseconds) = components
    return "\(seconds).\(attoseconds / 100_000_000_000_000_000)"
  }
}
