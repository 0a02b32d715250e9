public import AppGroup
public import Dispatch
public import PropertyLists

extension PeerSession {
  /// Calls a handler with what another peer sets: what is there now and has not been seen under this
  /// session's name yet, and whatever comes; the latest after any burst, and none after a newer one.
  ///
  /// Which one was handed over last is remembered in the container when the handler returns, so a
  /// context is handed over once, also across restarts of this peer; only to a process that was killed
  /// before its handler returned its successor's is handed again. Of two processes that observe under
  /// one name, the first that looks gets it, or both.
  ///
  /// - Parameters:
  ///   - peer: who sets it.
  ///   - queue: where the handler is called, one call at a time.
  ///   - handler: gets the context; or an error: one that is damaged, or that the container could not
  ///     remember as handed over, and hands over again after a restart.
  /// - Returns: the observation; it ends when it is cancelled or forgotten.
  /// - Throws: `PeerError` when the container cannot be used any more.
  public func observeContext(
    from peer: String, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (Result<PropertyListValue, PeerError>) -> Void
  ) throws -> Observation {
    let action = "observe the context from \"\(peer)\""
    return try betweenPeers(action, peer) {
      let seen = SeenContext(container.own.value(PeerNames.seen(from: peer, to: name)))
      return try contextValue(from: peer).observe(startsWithCurrent: true, on: queue) { snapshot in
        do {
          try seen.handOver(snapshot) { handler(.success($0)) }
        } catch {
          handler(.failure(PeerError(any: error, action, peer: peer)))
        }
      }
    }
  }
}

/// Which context a peer was handed last: a value beside the context, with the version of its
/// publication, so that the context itself stays just what was set.
private struct SeenContext {
  private let value: Value

  init(_ value: Value) { self.value = value }

  /// Hands over a context that was not, and remembers it then: killed in between, a process loses
  /// nothing.
  func handOver(_ snapshot: Snapshot, to handler: (PropertyListValue) -> Void) throws {
    guard let context = try snapshot.propertyList(), let version = snapshot.version?.text,
      !isKnown(version)
    else { return }
    handler(context)
    try value.replace(with: .string(version))
  }

  private func isKnown(_ version: String) -> Bool {
    do {
      return try value.read()?.stringValue == version
    } catch {
      // Handed over once too often rather than never; and then it can be read again.
      return false
    }
  }
}
