public import Dispatch
public import Wormhole

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
      try Diagnostics.reportingFaults { try Peer.all(in: container, &$0) }
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
}
