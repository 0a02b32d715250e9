package import WormholeSystem

/// What stands behind a container and its primitives: a directory, or another place that keeps the same
/// promises in its own way.
///
/// It is chosen once, when the container is opened. Only the engine's own room knows what its keys,
/// sessions and fences are; each primitive asks it for the part that stands behind it.
package protocol ContainerEngine: Sendable {
  /// Whether it is a directory, whose files other programs can read, and whose processes are all on this
  /// machine.
  var isDirectory: Bool { get }

  /// Returns the directory of this machine that belongs to the container: its own, or that for files
  /// which other machines need not see.
  func localDirectory() throws -> String

  /// Returns the identifiers under which something of a kind exists, in no order.
  func identifiers(of kind: NameKind) throws -> [String]

  func value(_ identifier: String, _ kind: NameKind, in container: SharedContainer)
    -> any ValueStore
  /// Returns a change of several values in one step.
  func change<Result: Sendable>(_ update: ValuesUpdate<Result>) -> sending any Waiting<Result>
  func presence(_ name: String, _ kind: NameKind, in container: SharedContainer)
    -> any PresenceStore
  /// Calls a closure whenever there may be a new name of a presence of the package's own.
  func watchOwnPresenceNames(_ signal: @escaping @Sendable () -> Void) throws -> any Cancelling
  func bell(_ name: String) -> any BellStore
  var mailboxes: any MailboxStore { get }
  func queue(_ queue: Queue) -> any QueueStore
  func attachments(of queue: Queue) -> any AttachmentStore
}

/// What an engine checks in the same step as a change: that a registration or a role is still that of
/// one entering. Only the engine that made it knows what it is.
package protocol EngineCondition: Sendable {}

/// An error of an engine, which becomes one with a sentence.
package protocol EngineError: Error {
  /// Returns the error of a call that has failed because of this one.
  func reported(_ action: String, path: String) -> AppGroupError
}
