import AppGroup
public import Dispatch
import Synchronization

/// The one who receives the messages for a name, until it is forgotten or ended. Thread-safe.
///
/// Only one process receives for a name at a time. One that is stopped is replaced by the next that
/// wants to; when it goes on it learns so, and what it does with the messages it had does no harm:
/// they were delivered again, marked as redeliveries.
public final class PeerReceiver: Sendable {
  /// For whom it receives.
  public let name: String
  private let consumer: Queue.Consumer
  /// Those of the session, which learn here that the sender of a message was there.
  private let reachabilities: ReachabilityWatches
  private let delivery = Mutex<MessageDelivery<PeerMessage>?>(nil)

  init(_ consumer: Queue.Consumer, for name: String, _ reachabilities: ReachabilityWatches) {
    self.consumer = consumer
    self.name = name
    self.reachabilities = reachabilities
  }

  deinit { end() }

  /// The next message, and waits for one if there is none. One caller waits at a time.
  ///
  /// - Parameter deadline: until when to wait; already past means "only if there is one now".
  /// - Returns: nil when the deadline has passed.
  /// - Throws: `PeerError`: `replaced` when another process receives now, `notActive` once it was
  ///   ended, also during the wait; or what the container refuses.
  /// - Complexity: one rename, open, read and close for all messages that were stored together.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func next(until deadline: ContinuousClock.Instant) throws -> PeerMessage? {
    try betweenPeers(action) { try consumer.next(until: deadline).map(message) }
  }

  /// The next message; see the form without `async`. Cancelling the task ends the wait as
  /// `cancelled`.
  public func next(until deadline: ContinuousClock.Instant) async throws -> PeerMessage? {
    try await betweenPeers(action) { try await consumer.next(until: deadline).map(message) }
  }

  /// Calls a handler with each message from now on, one at a time and in order; a message is
  /// acknowledged when the handler returns, and failed with what it throws.
  ///
  /// Looking for the next message and acknowledging happen on the handler's queue, too; nothing
  /// waits there. What the disk or the process lacks for a moment (space, descriptors) only delays.
  ///
  /// - Parameters:
  ///   - queue: where.
  ///   - failure: called once, there, if receiving ends otherwise than by `end()`: `replaced`, or what
  ///     the container refuses.
  ///   - handler: gets the message. It may acknowledge, fail or release it itself, earlier.
  /// - Precondition: it is called once.
  public func handle(
    on queue: DispatchQueue, failure: @escaping @Sendable (PeerError) -> Void = { _ in },
    _ handler: @escaping @Sendable (PeerMessage) throws -> Void
  ) {
    delivery.withLock { delivery in
      precondition(delivery == nil, "a receiver of messages has one handler")
      let (name, reachabilities) = (name, reachabilities)
      delivery = MessageDelivery(
        consumer, action, on: queue, failure: failure,
        open: { Self.message($0, for: name, reachabilities) }, handler)
    }
  }

  /// Whether nothing waits and nothing is being handled.
  ///
  /// - Throws: as `next`.
  /// - Complexity: two listings, of what waits and of what was taken.
  public func isIdle() throws -> Bool { try betweenPeers(action) { try consumer.isIdle() } }

  /// Ends receiving; what was not acknowledged is delivered again to the next. Once is enough.
  ///
  /// Whoever waits in `next` is woken at once. A handler that is running goes on, and its message is
  /// settled when it returns unless another has received it by then.
  public func end() {
    delivery.withLock { $0 }?.end()
    consumer.end()
  }

  /// For tests: whether somebody waits in `next`.
  var isAwaited: Bool { consumer.isAwaited }

  private var action: String { "receive messages for \"\(name)\"" }

  private func message(_ entry: QueueEntry) -> PeerMessage {
    Self.message(entry, for: name, reachabilities)
  }

  private static func message(
    _ entry: QueueEntry, for name: String, _ reachabilities: ReachabilityWatches
  ) -> PeerMessage {
    let message = PeerMessage(entry, for: name)
    reachabilities.heard(from: message.sender)
    return message
  }
}
