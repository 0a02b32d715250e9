import AppGroup

extension PeerSession {
  /// Starts a peer for which something was stored just now, if it registered so and no process receives
  /// for it. A stopped receiver counts: it gets the work when it continues, or the one that replaces it.
  ///
  /// - Parameter queue: where the work waits.
  /// - Returns: the reason that it could not be started; the work waits all the same. Nil otherwise.
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
