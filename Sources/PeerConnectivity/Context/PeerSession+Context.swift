public import AppGroup
public import Dispatch
public import PropertyLists

extension PeerSession {
  /// Replaces what a peer is to know of this one: the latest wins. It outlives both.
  public func setContext(_ value: PropertyListValue, for peer: String) throws {
    preconditionFailure("unbuilt")
  }

  /// Replaces what a peer is to know of this one; see the form without `async`.
  public func setContext(_ value: PropertyListValue, for peer: String) async throws {
    preconditionFailure("unbuilt")
  }

  /// What this peer set last for another; nil if it never did.
  public func context(for peer: String) throws -> PropertyListValue? {
    preconditionFailure("unbuilt")
  }

  /// What another peer set last for this one; nil if it never did.
  public func context(from peer: String) throws -> PropertyListValue? {
    preconditionFailure("unbuilt")
  }

  /// Removes what was set for a peer.
  public func removeContext(for peer: String) throws { preconditionFailure("unbuilt") }

  /// Calls a handler with what another peer sets: what is there now and has not been seen under this
  /// session's name yet, and whatever comes; the latest after any burst.
  ///
  /// Remembered in the container is what was handed over last, so a context is handed over once, also
  /// across restarts of this peer.
  public func observeContext(
    from peer: String, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (Result<PropertyListValue, PeerError>) -> Void
  ) throws -> Observation { preconditionFailure("unbuilt") }
}
