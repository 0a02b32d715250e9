import Dispatch
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
  /// It is active, and runs as far as can be seen from here.
  case reachable(PresenceMember)
  /// It is active but stopped: it answers when it continues, if that is in time.
  case suspended(PresenceMember)
  /// It is not active, but a request would start it.
  case launchable
  /// It is not active any more; `ended` is when the last process ended, nil if it was killed.
  case gone(last: PresenceMember?, ended: Date?)
  /// It was never active.
  case neverSeen

  /// Whether it is active, and not seen to be stopped.
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
      member.state == .unknown
        ? "\(member.process) is active; whether it runs cannot be seen from here"
        : "\(member.process) is active and runs"
    case .suspended(let member): "\(member.process) is stopped"
    case .launchable: "nobody is active under that name, and a request would start it"
    case .gone(let last, let ended):
      (last?.process ?? "the process that was active")
        + (ended.map { " has left at \($0.formatted(.iso8601))" } ?? " has ended without leaving")
    case .neverSeen: "no process has ever used that name"
    }
  }
}

extension PeerReachability {
  /// Checks whether a peer can be asked.
  static func of(_ peer: String, in container: SharedContainer) throws -> PeerReachability {
    let presence = container.own.presence(PeerNames.presence(peer))
    if let active = try presence.members().active { return PeerReachability(active) }
    if try Launcher.isLaunchable(peer, for: .request, in: container) { return .launchable }
    switch try presence.status() {
    case .neverSeen: return .neverSeen
    case .gone(let last, let ended): return .gone(last: last, ended: ended)
    // It has just appeared; or a process is present that cannot be reached.
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

extension Peer {
  /// All peers that a container knows of, by name.
  ///
  /// - Parameters:
  ///   - presences: The package's own presences, if the caller has just listed them.
  ///   - queues: Its own queues, likewise.
  ///   - faults: Takes the peers that cannot be looked at.
  package static func all(
    in container: SharedContainer, _ faults: inout NameFaults, presences: [String]? = nil,
    queues: [String]? = nil
  ) throws -> [Peer] {
    // By their bytes, because two names may be equal as strings.
    let presences = try presences ?? container.identifiers(of: .ownPresence, &faults)
    let queues = try queues ?? container.identifiers(of: .ownQueue, &faults)
    let launched = try PeerLaunch.Registry(in: container).peers(&faults)
    let present = presences.compactMap {
      PeerNames.peer(ofPresence: $0) ?? PeerNames.peer(ofAgent: $0)
    }
    let others = Set(
      (queues.compactMap { PeerNames.peer(ofQueue: $0) } + launched).map { Array($0.utf8) })
    return try others.union(present.map { Array($0.utf8) }).compactMap { bytes -> Peer? in
      let name = String(decoding: bytes, as: UTF8.self)
      let path = container.own.presence(PeerNames.presence(name)).path
      let look = try faults.attempt("look for a peer", path: path) {
        try PeerReachability.of(name, in: container)
      }
      // The name was only looked for.
      guard let reachability = look, reachability != .neverSeen || others.contains(bytes) else {
        return nil
      }
      return Peer(name: name, reachability: reachability)
    }.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
  }
}

extension [PresenceMember] {
  /// The process that is reached under a peer's name.
  var active: PresenceMember? { last { $0.isExclusive && $0.mailbox != nil } }
}

extension PresenceMember {
  var mailbox: String? { content?["mailbox"]?.stringValue }

  static func content(mailbox: String) -> PropertyListValue { ["mailbox": .string(mailbox)] }
}
