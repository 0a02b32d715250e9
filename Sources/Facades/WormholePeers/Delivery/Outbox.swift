import Synchronization
import Wormhole

/// The senders of one name, one for each queue. They are kept, because each remembers its last
/// stamp and the entries that it counted against the limits.
final class Outbox: Sendable {
  private struct State {
    /// By the bytes of the queues' names, of which two may be equal as strings.
    var senders: [[UInt8]: PlainSender] = [:]
    var limits = QueueLimits.standard
  }

  let container: SharedContainer
  let name: String
  private let state = Mutex(State())

  init(of name: String, in container: SharedContainer) {
    self.container = container
    self.name = name
  }

  /// The sender to one of the queues of a peer; throws `unsupportedValue` for text that cannot be
  /// its name.
  func sender(
    to peer: String, _ queueName: (String) -> String = PeerNames.messages
  ) throws -> PlainSender {
    try PeerNames.check(peer)
    let queue = queueName(peer)
    return try state.withLock { state in
      if let sender = state.senders[Array(queue.utf8)] { return sender }
      let sender = try container.own.queue(queue).sender(name, limits: state.limits)
      state.senders[Array(queue.utf8)] = sender
      return sender
    }
  }

  /// For tests: how much may wait in queues to which nothing was sent yet.
  func limit(to limits: QueueLimits) { state.withLock { $0.limits = limits } }

  /// Starts a peer for which work was just stored, if it registered and no process receives for it.
  /// A stopped receiver counts: it gets the work when it continues, or its replacement does.
  ///
  /// - Returns: the reason why it could not be started, or nil; the work waits in both cases.
  /// - Complexity: usually one look whether there is a registration.
  func wake(_ peer: String, isUrgent: Bool = false, for queue: PlainQueue) -> WormholeError? {
    do {
      let occasion: PeerLaunch.Occasions = isUrgent ? .urgentWork : .queuedWork
      let isRegistered =
        try container.onThisMachine.own.value(PeerNames.launch(peer)).version() != nil
      guard try isRegistered || LaunchWish.agent(for: peer, occasion, in: container) != nil,
        try queue.role.members().isEmpty
      else { return nil }
      _ = try Launcher.launch(peer, for: occasion, in: container, until: nil)
      return nil
    } catch {
      return WormholeError(any: error, "start \"\(peer)\"", peer: peer)
    }
  }
}
