public import AppGroup
public import Dispatch
import Synchronization

extension PeerSession {
  /// Whether a peer can be asked now, and why not.
  ///
  /// - Complexity: a look at its presence; where nobody is, another at what is registered to start it.
  public func reachability(of peer: String) throws -> PeerReachability {
    try PeerNames.check(peer)
    return try betweenPeers("look for \"\(peer)\"", peer) {
      try PeerReachability.of(peer, in: container)
    }
  }

  /// Calls a handler with the reachability of a peer, now and whenever somebody becomes or ends being
  /// active under the name.
  ///
  /// That a process is stopped or goes on has no event: it is seen at the next call, or by
  /// `reachability(of:)`. Nor has the registration of how it is started.
  ///
  /// - Parameters:
  ///   - peer: whose.
  ///   - queue: where the handler is called, one call at a time.
  ///   - handler: gets what a look finds then.
  /// - Returns: the observation; it ends when it is cancelled or forgotten.
  public func observeReachability(
    of peer: String, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (PeerReachability) -> Void
  ) throws -> Observation {
    try PeerNames.check(peer)
    let (container, last) = (container, LastReachability())
    return try betweenPeers("look for \"\(peer)\"", peer) {
      try container.own.presence(PeerNames.presence(peer)).observe(
        startsWithCurrent: true, on: queue
      ) {
        members in
        let now: PeerReachability
        do {
          now = try PeerReachability.of(peer, in: container)
        } catch {
          // For want of descriptors, perhaps: what presence has found is known all the same.
          now = PeerReachability(members)
        }
        if last.isNew(now) { handler(now) }
      }
    }
  }

  /// All peers that this container knows of, by name; this one too, once it was active.
  ///
  /// - Complexity: lists the container's names, and looks at the presence of each peer.
  public func peers() throws -> [Peer] {
    try betweenPeers("look for peers") { try Self.peers(in: container) }
  }

  /// The peers, now and whenever one comes, goes or dies, for `for await`.
  ///
  /// Watching begins when this returns, and ends with the sequence.
  public func peerChanges() throws -> AsyncStream<[Peer]> {
    try betweenPeers("look for peers") { try PeerCrowd.changes(in: container) }
  }

  /// The names of those who can be asked at once, without being started.
  func activePeers() throws -> [String] {
    try betweenPeers("look for peers") {
      try container.own.presenceNames().compactMap { PeerNames.peer(ofPresence: $0) }.filter {
        try container.own.presence(PeerNames.presence($0)).activeMember() != nil
      }
    }
  }

  static func peers(in container: SharedContainer) throws -> [Peer] {
    var names = Set(try container.own.presenceNames().compactMap { PeerNames.peer(ofPresence: $0) })
    let others =
      try container.own.queueNames().compactMap { PeerNames.peer(ofQueue: $0) }
      + container.own.valueIdentifiers().compactMap { PeerNames.peer(ofLaunch: $0) }
    names.formUnion(others)
    return try names.compactMap { name -> Peer? in
      let reachability = try PeerReachability.of(name, in: container)
      // Somebody has only asked for it.
      guard reachability != .neverSeen || others.contains(name) else { return nil }
      return Peer(name: name, reachability: reachability)
    }.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
  }
}

/// What an observer was told last.
private final class LastReachability: Sendable {
  private let last = Mutex<PeerReachability?>(nil)

  func isNew(_ now: PeerReachability) -> Bool {
    last.withLock { last in
      defer { last = now }
      return last != now
    }
  }
}
