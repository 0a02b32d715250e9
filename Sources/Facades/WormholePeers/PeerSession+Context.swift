public import Dispatch
public import Wormhole
public import WormholePropertyLists

extension PeerSession {
  /// Replaces this peer's context for another: the latest wins. It outlives both processes.
  ///
  /// - Throws: `PeerError`: `unsupportedValue`, also for a context that is too large; `timedOut`,
  ///   its `holder` the process in the way; `noSpace`, or another error of the container. Then the
  ///   previous context is intact.
  /// - Complexity: as `Value.replace`: create, write, rename and unlink, and eight cheap calls.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func setContext(_ value: PropertyListValue, for peer: String) throws {
    try betweenPeers(setting(peer), peer) { try ownContext(peer).replace(with: value) }
  }

  /// Replaces this peer's context for another; see the form without `async`.
  public func setContext(_ value: PropertyListValue, for peer: String) async throws {
    try await betweenPeers(setting(peer), peer) {
      try await ownContext(peer).replace(with: value)
    }
  }

  /// Replaces this peer's context for another by a value of any type; see the dynamic form.
  ///
  /// - Throws: also `unsupportedValue` for a context that cannot be encoded as a property list.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func setContext<Context: Encodable>(encoding context: Context, for peer: String) throws {
    try setContext(encoded(context, peer), for: peer)
  }

  /// Replaces this peer's context for another by a value of any type; see the dynamic form.
  public func setContext<Context: Encodable & Sendable>(
    encoding context: Context, for peer: String
  ) async throws {
    try await setContext(encoded(context, peer), for: peer)
  }

  /// The last context that this peer set for another; nil if it never set one, or has removed it.
  ///
  /// - Throws: `PeerError`: `damaged`, or an error of the container.
  /// - Complexity: open, fstat, read, close; no lock.
  public func context(for peer: String) throws -> PropertyListValue? {
    try betweenPeers("read the context for \"\(peer)\"", peer) { try ownContext(peer).read() }
  }

  /// The last context that another peer set for this one; nil if it never did, or has removed it.
  ///
  /// - Throws: `PeerError`: `damaged`, or an error of the container.
  /// - Complexity: open, fstat, read, close; no lock.
  public func context(from peer: String) throws -> PropertyListValue? {
    try betweenPeers(reading(peer), peer) { try contextValue(from: peer).read() }
  }

  /// The last context that another peer set for this one, as a type; see the dynamic form.
  ///
  /// - Throws: also `unexpectedValue`.
  public func context<Context: Decodable>(
    from peer: String, as type: Context.Type
  ) throws -> Context? {
    try context(from: peer)?.decoded(as: type, reading(peer), from: peer)
  }

  /// Removes the context for a peer; its observers are not notified.
  ///
  /// - Throws: `PeerError`, as `setContext`.
  public func removeContext(for peer: String) throws {
    _ = try betweenPeers("remove the context for \"\(peer)\"", peer) {
      try ownContext(peer).remove()
    }
  }

  // MARK: The values

  func contextValue(from peer: String) throws -> Value {
    try PeerNames.check(peer)
    return container.own.value(PeerNames.context(from: peer, to: name))
  }

  private func ownContext(_ peer: String) throws -> Value {
    try PeerNames.check(peer)
    var value = container.own.value(PeerNames.context(from: name, to: peer))
    // Even if this process is several peers.
    value.peer = name
    return value
  }

  private func encoded(_ context: some Encodable, _ peer: String) throws -> PropertyListValue {
    try betweenPeers(setting(peer), peer) { try PropertyListValue(encoding: context) }
  }

  private func setting(_ peer: String) -> String { "set the context for \"\(peer)\"" }

  private func reading(_ peer: String) -> String { "read the context from \"\(peer)\"" }
}

extension PeerSession {
  /// Calls a handler with the contexts that another peer sets: the current one, if it was not yet
  /// handed over under this session's name, and every later one; only the latest after a burst, and
  /// never an older one after a newer one.
  ///
  /// When the handler returns, the container notes which context it was, so a context is handed over once,
  /// even across restarts of this peer. If a process is killed before that, the next one
  /// gets it again. Of two processes that observe under one name, the first that looks gets it, or both.
  ///
  /// - Parameters:
  ///   - peer: the peer whose contexts are observed.
  ///   - queue: where the handler is called, one call at a time.
  ///   - handler: gets the context; or an error: the context is damaged, or it could not be noted
  ///     as handed over, and is handed over again after a restart.
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
          // Only then, so that a process that is killed in between loses nothing.
          try seen.replace(with: .string(version))
        } catch {
          handler(.failure(PeerError(any: error, action, peer: peer)))
        }
      }
    }
  }
}

/// The note of the last context handed over to a peer is a value beside the context, with the
/// version of its publication, so that the context's own file holds only the context.
private func isNoted(_ version: String, in seen: Value) -> Bool {
  // Handing it over twice is better than never, and then the note is written again.
  (try? seen.read()?.stringValue == version) ?? false
}
