/// The implementation behind a container and its primitives: a directory, or another place that
/// keeps the same promises in its own way.
///
/// It is chosen once, when the container is opened. Only the engine's own module knows its keys,
/// sessions and fences. Each primitive adds a protocol that refines this one, and through it asks the engine
/// for its implementation: see `SharedContainer.engine(as:)`.
package protocol ContainerEngine: Sendable {
  /// The name of this machine among those whose processes may share the container; nil if all of
  /// them are on this one, as in a directory. Costs no system call.
  var host: String? { get }

  /// Returns the same engine for a caller with another deadline; nil if no call waits for an answer,
  /// so that a deadline ends none.
  func limited(_ limit: CallLimit) -> (any ContainerEngine)?

  /// Returns the container's directory on this machine: its own, or the directory for files that
  /// other machines need not see.
  func localDirectory() throws -> String

  /// Returns the identifiers under which something of a kind exists, in no order.
  ///
  /// - Parameter faults: Receives the entries that cannot be names.
  func identifiers(of kind: NameKind, _ faults: inout NameFaults) throws -> [String]
}

/// A condition that an engine checks in the same step as a change: that a registration or a role
/// still belongs to one entering. Only the engine that created it can interpret it.
package protocol EngineCondition: Sendable {}
