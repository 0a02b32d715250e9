import Dispatch
import Synchronization
public import Wormhole
import WormholeSystem

/// This process as one of any number of named peers that share a container.
///
/// A session can send as soon as it is made. `activate` makes it the session that others reach
/// under its name: in one process at a time, proved by `Presence`; a stopped process is replaced.
///
/// A session has no mechanism of its own: requests go through mailboxes, guaranteed messages and
/// files through a `Queue` for each receiver, contexts are `Value`s, reachability is `Presence`.
///
/// It is closed when it is released, so objects that others keep do not hold it.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// phone.handleRequests { request in ["sold": request.value] }
/// try await phone.activate()
///
/// let till = try PeerSession("till", in: container)
/// print(try await till.request([7, 8], to: "phone", until: .now + .seconds(2)))
/// ```
public final class PeerSession: Sendable {
  /// The container that the peers share.
  public let container: SharedContainer
  /// This peer's name.
  public let name: String
  /// The senders of its messages and files.
  let outbox: Outbox
  /// The copying of the files that it sends.
  let outgoingFiles: OutgoingFiles
  /// The requests under way, of both directions.
  let calls: CallEndpoint
  /// The requests that wait for a handler.
  let incoming = IncomingRequests()
  let reachabilities = ReachabilityWatches()
  let callbacks = Blocking.queue()
  let state = Mutex(State())

  /// Makes a session; nothing is read or written before it is used.
  ///
  /// - Parameters:
  ///   - name: any string, byte for byte, of at most 100 bytes once encoded as the names of values are.
  ///   - container: the container that the peers share.
  /// - Throws: `PeerError`: `unsupportedValue` for a longer or an empty name.
  public init(_ name: String, in container: SharedContainer) throws {
    try PeerNames.check(name)
    self.container = container
    self.name = name
    outbox = Outbox(of: name, in: container)
    outgoingFiles = OutgoingFiles(outbox)
    let receiver = Receiver()
    calls = CallEndpoint(in: container) { call in
      receiver.session.withLock { $0.session }?.receive(call)
    }
    receiver.session.withLock { $0.session = self }
  }

  deinit { close() }

  private final class Receiver: Sendable {
    struct Reference { weak var session: PeerSession? }

    let session = Mutex(Reference())
  }
}
