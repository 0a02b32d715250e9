import Synchronization
import Wormhole
import WormholeSystem

/// The receiver of the messages, or of the files, for a name, until it is closed or released.
/// Thread-safe.
///
/// Only one process receives for a name at a time. A stopped one is replaced by the next process
/// that wants to receive. When the stopped one continues, it learns that, and its deliveries do no
/// harm: they were delivered again, marked as redeliveries, and the files have moved.
///
/// ```swift
/// let receiver = try await PeerSession("till", in: container).receiveMessages()
/// receiver.handle(on: .main) { message in
///   print(message.value)                      // acknowledged when this returns
/// }
/// ```
public final class PeerReceiver<Delivered: PeerDelivery>: Sendable {
  /// How an entry becomes a delivery.
  struct Opening: Sendable {
    /// "messages" or "files".
    let what: String
    let queue: Queue
    /// Whether `open` calls the file system.
    let blocks: Bool
    /// - Returns: nil for an entry that has ended by this call.
    let open: @Sendable (QueueEntry) throws -> Delivered?
  }

  /// The peer for which it receives.
  public let name: String
  let consumer: Queue.Consumer
  let opening: Opening
  let handling = Mutex(Handling())

  init(_ consumer: Queue.Consumer, for name: String, _ opening: Opening) {
    self.consumer = consumer
    self.name = name
    self.opening = opening
  }

  deinit { close() }

  /// The next delivery; waits for one if there is none. One caller waits at a time.
  ///
  /// A file whose size differs from the sent size is not handed over: it fails, and its sender
  /// learns it. A file claimed by a process that died before acknowledging is acknowledged.
  ///
  /// - Parameter deadline: when to stop waiting; one in the past means "only if there is one now".
  /// - Returns: nil when the deadline has passed.
  /// - Throws: `PeerError`: `replaced` when another process receives now; `notActive` once it was
  ///   closed, also during the wait; or an error of the container.
  /// - Complexity: one rename, open, read and close for all messages that were stored together; for
  ///   a file two renames and some cheap calls, whatever its size.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func next(until deadline: ContinuousClock.Instant) throws -> Delivered? {
    try betweenPeers(action) {
      while let entry = try consumer.next(until: deadline) {
        if let delivered = try opening.open(entry) { return delivered }
      }
      return nil
    }
  }

  /// The next delivery; see the form without `async`. Cancelling the task ends the wait as `cancelled`.
  public func next(until deadline: ContinuousClock.Instant) async throws -> Delivered? {
    try await betweenPeers(action) {
      while let entry = try await consumer.next(until: deadline) {
        let opening = opening
        let delivered =
          try opening.blocks
          ? await Blocking.run { try opening.open(entry) } : opening.open(entry)
        if let delivered { return delivered }
      }
      return nil
    }
  }

  /// Whether nothing waits and nothing is being handled.
  ///
  /// - Throws: as `next`.
  /// - Complexity: two listings, of the entries that wait and of those that were taken.
  public func isIdle() throws -> Bool { try betweenPeers(action) { try consumer.isIdle() } }

  /// Ends receiving; everything that was not acknowledged is delivered again to the next receiver.
  /// Further calls have no effect.
  ///
  /// A caller that waits in `next` is woken at once. A delivery whose handler is running ends when
  /// the handler returns, unless another process has received it by then.
  public func close() { end { $0.close() } }

  /// Ends receiving as if its process had died, for the other processes; here as `close`.
  package func abandon() { end { $0.abandon() } }

  private func end(_ end: (Queue.Consumer) -> Void) {
    let looks = handling.withLock { handling in
      handling.isEnded = true
      return handling.looks
    }
    looks?.cancel()
    end(consumer)
  }

  /// For tests: whether a caller waits in `next`.
  var isAwaited: Bool { consumer.isAwaited }

  var action: String { "receive \(opening.what) for \"\(name)\"" }
}
