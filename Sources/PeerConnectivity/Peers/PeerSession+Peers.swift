public import AppGroup
public import Dispatch

extension PeerSession {
  /// Whether a peer can be asked now, and why not.
  public func reachability(of peer: String) throws -> PeerReachability {
    preconditionFailure("unbuilt")
  }

  /// Calls a handler with the reachability of a peer, now and whenever it may have changed.
  ///
  /// - Returns: the observation; it ends when it is cancelled or forgotten.
  public func observeReachability(
    of peer: String, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (PeerReachability) -> Void
  ) throws -> Observation { preconditionFailure("unbuilt") }

  /// All peers that this container knows of, by name; this one too.
  public func peers() throws -> [Peer] { preconditionFailure("unbuilt") }

  /// The peers, now and whenever one comes, goes or dies, for `for await`.
  public func peerChanges() throws -> AsyncStream<[Peer]> { preconditionFailure("unbuilt") }
}
