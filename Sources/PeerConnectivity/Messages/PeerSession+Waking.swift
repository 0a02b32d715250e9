import AppGroup

extension PeerSession {
  /// Starts a peer for which something was stored just now, if it registered so and nobody receives
  /// it. Not for a receiver that is stopped: it has the work when it goes on, or whoever replaces it.
  ///
  /// - Parameter queue: where the work waits.
  /// - Returns: why it could not be started: the work waits all the same. Nil if there is nothing to
  ///   tell.
  /// - Complexity: one look whether there is a registration, as a rule.
  func wake(_ peer: String, isUrgent: Bool, for queue: Queue) -> PeerError? {
    do {
      guard try container.own.value(PeerNames.launch(peer)).version() != nil,
        try queue.role.members().isEmpty
      else { return nil }
      _ = try Launcher.begin(peer, for: isUrgent ? .urgentWork : .queuedWork, in: container)
      return nil
    } catch {
      return PeerError(any: error, "start \"\(peer)\"", peer: peer)
    }
  }
}
