public import AppGroup

/// This process as one of any number of named peers that share a container.
///
/// A session can send as soon as it is made. `activate` makes it the session that others reach under its
/// name: in one process at a time, proved by `Presence`; a stopped one is replaced.
///
/// A session holds no mechanism of its own: requests travel through mailboxes, guaranteed messages and
/// files through a `Queue` for each receiver, contexts are `Value`s, reachability is `Presence`.
///
/// It is closed when it is released.
public final class PeerSession: Sendable {
  /// The container that the peers share.
  public let container: SharedContainer
  /// This peer's name.
  public let name: String
  /// The senders of its messages.
  let outbox = MessageOutbox()
  /// The copying of the files that it sends.
  let outgoingFiles: OutgoingFiles

  let core: PeerCore

  /// A session; nothing is touched before it is used.
  ///
  /// - Parameters:
  ///   - name: any string, byte for byte, of at most 100 bytes once encoded as the names of values are.
  ///   - container: the container that the peers share.
  /// - Throws: `PeerError`: `unsupportedValue` for a longer or an empty name.
  public init(_ name: String, in container: SharedContainer) throws {
    try PeerNames.check(name)
    self.container = container
    self.name = name
    core = PeerCore(name, in: container)
    outgoingFiles = OutgoingFiles(of: name, in: container)
  }

  deinit { core.close() }
}
