public import AppGroup
public import Dispatch
public import PropertyLists

extension PeerSession {
  /// Calls a handler with the contexts that another peer sets: the one that is there, if it has not been seen
  /// under this session's name yet, and those that come; the latest after any burst, and never an older one
  /// after a newer one.
  ///
  /// When the handler returns, the container notes which context it was, so a context is handed over once,
  /// also across restarts of this peer. After a process was killed before its handler returned, the next one
  /// gets it again. Of two processes that observe under one name, the first that looks gets it, or both.
  ///
  /// - Parameters:
  ///   - peer: the peer that sets them.
  ///   - queue: where the handler is called, one call at a time.
  ///   - handler: gets the context; or an error: the context is damaged, or it could not be noted as handed
  ///     over, and is handed over again after a restart.
  /// - Returns: the observation; it ends when it is cancelled or released.
  /// - Throws: `PeerError` when the container cannot be used any more.
  public func observeContext(
    from peer: String, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (Result<PropertyListValue, PeerError>) -> Void
  ) throws -> ObservationToken {
    let action = "observe the context from \"\(peer)\""
    return try betweenPeers(action, peer) {
      let seen = container.own.value(PeerNames.seen(from: peer, to: name))
      return try contextValue(from: peer).observe(startsWithCurrent: true, on: queue) { snapshot in
        do {
          guard let context = try snapshot.propertyList(), let version = snapshot.version?.text,
            !isNoted(version, in: seen)
          else { return }
          handler(.success(context))
          // Then, so that a process that is killed in between loses nothing.
          try seen.replace(with: .string(version))
        } catch {
          handler(.failure(PeerError(any: error, action, peer: peer)))
        }
      }
    }
  }
}

/// The note of the context that a peer was handed last is a value beside the context, with the version of
/// its publication, so that the context's own file holds nothing else.
private func isNoted(_ version: String, in seen: Value) -> Bool {
  do {
    return try seen.read()?.stringValue == version
  } catch {
    // Handing it over once too often is better than never, and then the note is written again.
    return false
  }
}
