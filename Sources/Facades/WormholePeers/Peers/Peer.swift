public import Dispatch
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

extension PeerSession {
  /// Whether a peer can be asked now, or why not.
  ///
  /// If the answer differs from the last report to an observer of this session, the observer also
  /// gets it: see `observeReachability`.
  ///
  /// - Complexity: a look at its presence; if no process is present, another at its registration
  ///   for being started.
  public func reachability(of peer: String) throws -> PeerReachability {
    try PeerNames.check(peer)
    let now = try betweenPeers("look for \"\(peer)\"", peer) {
      try PeerReachability.of(peer, in: container)
    }
    reachabilities.answered(peer, now)
    return now
  }

  /// Calls a handler with the reachability of a peer, now and whenever it changes.
  ///
  /// The handler is called at once when a process becomes active under the name or ends, because
  /// these are events. The kernel has no event for a process that is stopped or continues: that is
  /// seen within a second. A different answer of this session's `reachability(of:)` or `peers()` is
  /// reported at once, and so is the state that follows from the peer's request or message. A new
  /// registration for being started is reported only with the next answer.
  ///
  /// - Parameters:
  ///   - peer: the peer to observe.
  ///   - queue: where the handler is called, one call at a time.
  ///   - handler: gets the result of a look.
  /// - Returns: the observation; it ends when it is cancelled or released.
  /// - Complexity: a look for each event. While a process is active under the name, open, read and
  ///   close of one file of /proc once a second; otherwise nothing.
  public func observeReachability(
    of peer: String, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (PeerReachability) -> Void
  ) throws -> ObservationToken {
    try PeerNames.check(peer)
    return try betweenPeers("look for \"\(peer)\"", peer) {
      try ReachabilityWatch.observe(
        peer, in: container, of: reachabilities, on: queue, handler)
    }
  }

  /// All peers that this container knows of, by name, including this one if it was ever active.
  ///
  /// - Complexity: lists the container's names, and looks at the presence of each peer.
  public func peers() throws -> [Peer] {
    let peers = try betweenPeers("look for peers") {
      try Diagnostics.reportingFaults { try Self.peers(in: container, &$0) }
    }
    for peer in peers { reachabilities.answered(peer.name, peer.reachability) }
    return peers
  }

  /// The peers, now and whenever one appears, leaves, dies, stops or continues, for `for await`.
  ///
  /// Watching begins when this returns, and ends with the sequence. Each peer is watched as in
  /// `observeReachability`, at the same cost; after a change of one, all are looked at.
  public func peerChanges() throws -> AsyncStream<[Peer]> {
    try betweenPeers("look for peers") {
      try PeerCrowd.changes(in: container, of: reachabilities)
    }
  }

  /// The names of the peers that can be asked at once, without a start.
  func activePeers() throws -> [String] {
    try betweenPeers("look for peers") {
      try Diagnostics.reportingFaults { faults in
        try container.own.presenceNames().compactMap { PeerNames.peer(ofPresence: $0) }.filter {
          let presence = container.own.presence(PeerNames.presence($0))
          let members = try faults.attempt("look who is present", path: presence.path) {
            try presence.members()
          }
          return members?.active != nil
        }
      }
    }
  }

  /// - Parameters:
  ///   - presences: The package's own presences, if the caller has just listed them.
  ///   - queues: Its own queues, likewise.
  ///   - faults: Takes the peers that cannot be looked at.
  package static func peers(
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
