import AppGroup
public import PropertyLists

extension PeerSession {
  /// Replaces this peer's context for another: the latest wins. It outlives both processes.
  ///
  /// - Throws: `PeerError`: `unsupportedValue`, also for a context that is too large; `timedOut`, its
  ///   `holder` the process in the way; `noSpace`, or another error of the container. The context that was
  ///   set before is intact then.
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

  /// The context that this peer set last for another; nil if it never did, or has removed it.
  ///
  /// - Throws: `PeerError`: `damaged`, or an error of the container.
  /// - Complexity: open, fstat, read, close; no lock.
  public func context(for peer: String) throws -> PropertyListValue? {
    try betweenPeers("read the context for \"\(peer)\"", peer) { try ownContext(peer).read() }
  }

  /// The context that another peer set last for this one; nil if it never did, or has removed it.
  ///
  /// - Throws: `PeerError`: `damaged`, or an error of the container.
  /// - Complexity: open, fstat, read, close; no lock.
  public func context(from peer: String) throws -> PropertyListValue? {
    try betweenPeers(reading(peer), peer) { try contextValue(from: peer).read() }
  }

  /// The context that another peer set last for this one, as a value of a type; see the dynamic form.
  ///
  /// - Throws: also `unexpectedValue`.
  public func context<Context: Decodable>(
    from peer: String, as type: Context.Type
  ) throws -> Context? {
    try context(from: peer)?.decoded(as: type, reading(peer), from: peer)
  }

  /// Removes the context for a peer; its observers are not told.
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
    // Also where this process is several peers.
    value.peer = name
    return value
  }

  private func encoded(_ context: some Encodable, _ peer: String) throws -> PropertyListValue {
    try betweenPeers(setting(peer), peer) { try PropertyListValue(encoding: context) }
  }

  private func setting(_ peer: String) -> String { "set the context for \"\(peer)\"" }

  private func reading(_ peer: String) -> String { "read the context from \"\(peer)\"" }
}
