package import WormholeSystem

/// The implementation behind a container and its primitives: a directory, or another place that
/// keeps the same promises in its own way.
///
/// It is chosen once, when the container is opened. Only the engine's own module knows its keys,
/// sessions and fences; each primitive asks the engine for its implementation.
package protocol ContainerEngine: Sendable {
  /// Whether it is a directory, whose files other programs can read, and whose processes are all on this
  /// machine.
  var isDirectory: Bool { get }

  /// Returns the same engine for a caller with another deadline.
  func limited(_ limit: CallLimit) -> any ContainerEngine

  /// Returns the container's directory on this machine: its own, or the directory for files that
  /// other machines need not see.
  func localDirectory() throws -> String

  /// Returns the identifiers under which something of a kind exists, in no order.
  ///
  /// - Parameter faults: Receives the entries that cannot be names.
  func identifiers(of kind: NameKind, _ faults: inout NameFaults) throws -> [String]

  func value(_ identifier: String, _ kind: NameKind, in container: SharedContainer)
    -> any ValueStore
  /// Returns a change of several values in one step.
  func change<Result: Sendable>(_ update: ValuesUpdate<Result>) -> sending any Waiting<Result>
  func presence(_ name: String, _ kind: NameKind, in container: SharedContainer)
    -> any PresenceStore
  /// Calls a closure whenever the package may have a new name of a presence.
  func watchOwnPresenceNames(_ signal: @escaping @Sendable () -> Void) throws -> any Cancelling
  func posts(_ name: String) -> any PostStore
  func queue(_ queue: PlainQueue) -> any QueueStore
  func attachments(of queue: PlainQueue) -> any AttachmentStore
  func log(_ name: String, in container: SharedContainer) -> any LogStore
}

/// A condition that an engine checks in the same step as a change: that a registration or a role
/// still belongs to one entering. Only the engine that created it can interpret it.
package protocol EngineCondition: Sendable {}

/// An error of an engine, which becomes an error with a sentence.
package protocol EngineError: Error {
  /// Returns the error of a call that has failed because of this one.
  func reported(_ action: String, path: String) -> WormholeError
}
