import AppGroup
public import PropertyLists

extension PeerSession {
  /// Replaces what a peer is to know of this one: the latest wins. It outlives both.
  ///
  /// - Throws: `PeerError`: `unsupportedValue`, also for what is too large; `timedOut`, its `holder` who is in the way;
  ///   `noSpace`, or what else the container refuses. What was set before is intact then.
  /// - Complexity: as `Value.replace`: create, write, rename and unlink, and eight cheap calls.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func setContext(_ value: PropertyListValue, for peer: String) throws {
    try betweenPeers(setting(peer), peer) { try ownContext(peer).replace(with: value) }
  }

  /// Replaces what a peer is to know of this one; see the form without `async`.
  public func setContext(_ value: PropertyListValue, for peer: String) async throws {
    try await betweenPeers(setting(peer), peer) {
      try await ownContext(peer).replace(with: value)
    }
  }

  /// Replaces what a peer is to know of this one by a value of any type; see the dynamic form.
  ///
  /// - Throws: also `unsupportedValue` for what cannot be encoded as a property list.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func setContext<Context: Encodable>(encoding context: Context, for peer: String) throws {
    try setContext(encoded(context, peer), for: peer)
  }

  /// Replaces what a peer is to know of this one by a value of any type; see the dynamic form.
  public func setContext<Context: Encodable & Sendable>(
    encoding context: Context, for peer: String
  ) async throws {
    try await setContext(encoded(context, peer), for: peer)
  }

  /// What this peer set last for another; nil if it never did, or has removed it.
  ///
  /// - Throws: `PeerError`: `damaged`, or what the container refuses.
  /// - Complexity: open, fstat, read, close; no lock.
  public func context(for peer: String) throws -> PropertyListValue? {
    try betweenPeers("read the context for \"\(peer)\"", peer) { try ownContext(peer).read() }
  }

  /// What another peer set last for this one; nil if it never did, or has removed it.
  ///
  /// - Throws: `PeerError`: `damaged`, or what the container refuses.
  /// - Complexity: open, fstat, read, close; no lock.
  public func context(from peer: String) throws -> PropertyListValue? {
    try betweenPeers(reading(peer), peer) { try contextValue(from: peer).read() }
  }

  /// What another peer set last for this one, as a value of a type; see the dynamic form.
  ///
  /// - Throws: also `unexpectedValue`.
  public func context<Context: Decodable>(
    from peer: String, as type: Context.Type
  ) throws -> Context? {
    try context(from: peer)?.decoded(as: type, reading(peer), from: peer)
  }

  /// Removes what was set for a peer; whoever observes it is not told.
  ///
  /// - Throws: `PeerError`, as `setContext`.
  public func removeContext(for peer: String) throws {
    _ = try betweenPeers("remove the context for \"\(peer)\"", peer) {
      try ownContext(peer).remove()
    }
  }

  // MARK: Where it is

  func contextValue(from peer: String) throws -> Value {
    try PeerNames.check(peer)
    return container.own.value(PeerNames.context(from: peer, to: name))
  }

  private func ownContext(_ peer: String) throws -> Value {
    try PeerNames.check(peer)
    return container.own.value(PeerNames.context(from: name, to: peer))
  }

  private func encoded(_ context: some Encodable, _ peer: String) throws -> PropertyListValue {
    try betweenPeers(setting(peer), peer) { try PropertyListValue(encoding: context) }
  }

  private func setting(_ peer: String) -> String { "set the context for \"\(peer)\"" }

  private func reading(_ peer: String) -> String { "read the context from \"\(peer)\"" }
}
