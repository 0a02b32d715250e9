public import AppGroup

/// This process as one of any number of named peers that share a container.
///
/// A session can send as soon as it is made. `activate` makes it the one that others reach under its
/// name: one process at a time, proved by `Presence`; one that is stopped is replaced.
///
/// A session holds no mechanism of its own: requests travel through mailboxes, guaranteed messages and
/// files through a `Queue` for each receiver, contexts are `Value`s, reachability is `Presence`.
///
/// It ends when it is forgotten: what is under way then ends as by `invalidate`.
public final class PeerSession: Sendable {
  /// The container that the peers share.
  public let container: SharedContainer
  /// This peer's name.
  public let name: String
  /// By whom it sends messages.
  let outbox = MessageOutbox()
  /// What copies the files that it sends.
  let outgoingFiles: OutgoingFiles

  let core: PeerCore

  /// A session; nothing is touched before it is used.
  ///
  /// - Parameters:
  ///   - container: what the peers share.
  ///   - name: any string, byte for byte, of at most 100 bytes once encoded as the names of values are.
  /// - Throws: `PeerError`: `unsupportedValue` for a longer or an empty name.
  public init(_ container: SharedContainer, name: String) throws {
    try PeerNames.check(name)
    self.container = container
    self.name = name
    core = PeerCore(container, name: name)
    outgoingFiles = OutgoingFiles(container, name)
  }

  deinit { core.invalidate() }
}
