import AppGroup
import Synchronization

/// The senders of a session's messages: one for each peer, kept, because each remembers the last stamp that
/// it gave and the entries that it counted against the limits.
final class MessageOutbox: Sendable {
  private struct State {
    /// By the bytes of the peers' names, of which two may be equal as strings.
    var senders: [[UInt8]: Queue.Sender] = [:]
    var limits = Queue.Limits.standard
  }

  private let state = Mutex(State())

  /// The sender to a peer.
  ///
  /// - Throws: `PeerError`: `unsupportedValue` for text that cannot be a peer's name.
  func sender(
    in container: SharedContainer, from name: String, to peer: String
  ) throws -> Queue.Sender {
    try PeerNames.check(peer)
    let key = Array(peer.utf8)
    return try state.withLock { state in
      if let sender = state.senders[key] { return sender }
      let queue = container.own.queue(PeerNames.messages(peer))
      let sender = try queue.sender(name, limits: state.limits)
      state.senders[key] = sender
      return sender
    }
  }

  /// For tests: how much may wait for peers to which nothing was sent yet.
  func limit(to limits: Queue.Limits) { state.withLock { $0.limits = limits } }
}
