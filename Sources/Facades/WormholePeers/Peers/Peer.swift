public import FoundationEssentials
public import Wormhole

/// A peer that others know of: it is or was active, or something waits or is registered for it.
///
/// ```swift
/// for peer in try PeerSession("till", in: container).peers() {
///   print(peer.name, peer.reachability.isReachable, peer.reachability.reason)
/// }
/// ```
public struct Peer: Sendable, Hashable {
  /// Its name.
  public let name: String
  /// Whether it can be asked now, or why not.
  public let reachability: PeerReachability
}

/// Whether a peer can be asked now, or why not.
///
/// ```swift
/// let till = try PeerSession("till", in: container)
/// switch try till.reachability(of: "phone") {
/// case .reachable, .launchable: print("ask now")
/// case .suspended(let member): print("process \(member.processID) is stopped")
/// case .gone, .neverSeen: print("enqueue it instead")
/// }
/// ```
public enum PeerReachability: Sendable, Hashable {
  /// It is active and runs.
  case reachable(PresenceMember)
  /// It is active and stopped: it answers when it continues, if that is in time.
  case suspended(PresenceMember)
  /// It is not active, but a request would start it.
  case launchable
  /// It is not active any more; `ended` is when the last process ended, nil if it was killed.
  case gone(last: PresenceMember?, ended: Date?)
  /// It was never active.
  case neverSeen

  /// Whether it is active and runs.
  public var isReachable: Bool {
    if case .reachable = self { true } else { false }
  }

  /// A word for machines; the words never change.
  package var word: String {
    switch self {
    case .reachable: "reachable"
    case .suspended: "suspended"
    case .launchable: "launchable"
    case .gone: "gone"
    case .neverSeen: "neverSeen"
    }
  }

  /// The reason, as a clause for people: "process 4711 (watchd) is stopped".
  public var reason: String {
    switch self {
    case .reachable(let member):
      "process \(member.processID) (\(member.program)) is active and runs"
    case .suspended(let member):
      "process \(member.processID) (\(member.program)) is stopped"
    case .launchable: "nobody is active under that name, and a request would start it"
    case .gone(let last, let ended):
      (last.map { "process \($0.processID) (\($0.program))" } ?? "the process that was active")
        + (ended.map { " has left at \($0.formatted(.iso8601))" } ?? " has ended without leaving")
    case .neverSeen: "nobody was ever active under that name"
    }
  }
}

extension PeerReachability {
  /// Looks whether a peer can be asked.
  static func of(_ peer: String, in container: SharedContainer) throws -> PeerReachability {
    let presence = container.own.presence(PeerNames.presence(peer))
    if let active = try presence.members().active { return PeerReachability(active) }
    if try Launcher.isLaunchable(peer, for: .request, in: container) { return .launchable }
    switch try presence.status() {
    case .neverSeen: return .neverSeen
    case .gone(let last, let ended): return .gone(last: last, ended: ended)
    // It has just appeared; or a process is present without being reached.
    case .running(let member), .unknown(let member), .suspended(let member):
      return member.mailbox == nil ? .neverSeen : .reachable(member)
    }
  }

  /// The reachability as far as the present processes show it.
  init(_ members: [PresenceMember]) {
    self = members.active.map { PeerReachability($0) } ?? .gone(last: nil, ended: nil)
  }

  private init(_ active: PresenceMember) {
    self = active.state == .suspended ? .suspended(active) : .reachable(active)
  }

  /// Whether a process is active under the name, running or not.
  var isActive: Bool { member != nil }

  /// The process that is active under the name, running or not.
  var member: PresenceMember? {
    switch self {
    case .reachable(let member), .suspended(let member): member
    case .launchable, .gone, .neverSeen: nil
    }
  }

  /// The process in the way of an answer.
  var holder: LeaseHolder? { member?.holder }
}
