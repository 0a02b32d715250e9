import AppGroup
public import Dispatch
import Synchronization

/// The receiver of the messages, or of the files, for a name, until it is closed or released.
/// Thread-safe.
///
/// Only one process receives for a name at a time. One that is stopped is replaced by the next process
/// that wants to receive. When the stopped one continues, it learns so, and its deliveries do no harm:
/// they were delivered again, marked as redeliveries, and the files are not where they were.
public final class PeerReceiver<Delivered: PeerDelivery>: Sendable {
  /// How an entry becomes a delivery.
  struct Opening: Sendable {
    /// "messages" or "files".
    let what: String
    let queue: Queue
    /// Whether `open` calls the file system.
    let blocks: Bool
    /// - Returns: nil for an entry that has ended by this.
    let open: @Sendable (QueueEntry) throws -> Delivered?
  }

  /// The peer for which it receives.
  public let name: String
  private let consumer: Queue.Consumer
  private let opening: Opening
  private let handling = Mutex<Handling<Delivered>?>(nil)

  init(_ consumer: Queue.Consumer, for name: String, _ opening: Opening) {
    self.consumer = consumer
    self.name = name
    self.opening = opening
  }

  deinit { close() }

  /// The next delivery; waits for one if there is none. One caller waits at a time.
  ///
  /// A file that does not have the size that was sent is not handed over: it fails, and its sender learns
  /// it. One that was claimed by a process that died before it could acknowledge it is acknowledged.
  ///
  /// - Parameter deadline: until when to wait; already past means "only if there is one now".
  /// - Returns: nil when the deadline has passed.
  /// - Throws: `PeerError`: `replaced` when another process receives now; `notActive` once it was
  ///   closed, also during the wait; or an error of the container.
  /// - Complexity: one rename, open, read and close for all messages that were stored together; for a
  ///   file two renames and some cheap calls, whatever its size.
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

  /// Calls a handler with each delivery from now on, one at a time and in order. It is acknowledged when
  /// the handler returns, and failed with an error that the handler throws. A file is deleted then, unless
  /// it was claimed or moved away.
  ///
  /// Looking for the next one and acknowledging happen on the handler's queue, too; nothing waits there.
  /// A lack of space or of descriptors only delays.
  ///
  /// - Parameters:
  ///   - queue: where the handler is called.
  ///   - failure: called once, there, if receiving ends otherwise than by `close()`: `replaced`, or an
  ///     error of the container.
  ///   - handler: gets the delivery. It may acknowledge, fail or release it itself, earlier.
  /// - Precondition: it is called once.
  public func handle(
    on queue: DispatchQueue, failure: @escaping @Sendable (PeerError) -> Void = { _ in },
    _ handler: @escaping @Sendable (Delivered) throws -> Void
  ) {
    handling.withLock { handling in
      precondition(handling == nil, "a receiver has one handler")
      handling = Handling(
        consumer, action, on: queue, failure: failure, open: opening.open, handler)
    }
  }

  /// Whether nothing waits and nothing is being handled.
  ///
  /// - Throws: as `next`.
  /// - Complexity: two listings, of the entries that wait and of those that were taken.
  public func isIdle() throws -> Bool { try betweenPeers(action) { try consumer.isIdle() } }

  /// Ends receiving; everything that was not acknowledged is delivered again to the next receiver. Further
  /// calls have no effect.
  ///
  /// A caller that waits in `next` is woken at once. The delivery of a handler that is
  /// running ends when the handler returns, unless another process has received it by then.
  public func close() {
    handling.withLock { $0 }?.end()
    consumer.close()
  }

  /// For tests: whether a caller waits in `next`.
  var isAwaited: Bool { consumer.isAwaited }

  private var action: String { "receive \(opening.what) for \"\(name)\"" }
}
