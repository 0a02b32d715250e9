import AppGroup
public import Dispatch
import Synchronization

/// The one who receives the files for a name, until it is forgotten or ended. Thread-safe.
///
/// Only one process receives for a name at a time. One that is stopped is replaced by the next that
/// wants to; when it goes on, the files that it had are not where they were, so it neither claims nor
/// deletes what the other handles.
public final class PeerFileReceiver: Sendable {
  /// For whom it receives.
  public let name: String
  private let consumer: Queue.Consumer
  private let delivery = Mutex<MessageDelivery<PeerFile>?>(nil)

  init(_ consumer: Queue.Consumer, for name: String) {
    self.consumer = consumer
    self.name = name
  }

  deinit { end() }

  /// The next file, and waits for one if there is none. One caller waits at a time.
  ///
  /// A file that does not have the size that was sent is not handed over: it has failed, and its sender
  /// learns it. One that was claimed by a process that died before it could acknowledge it is
  /// acknowledged.
  ///
  /// - Parameter deadline: until when to wait; already past means "only if there is one now".
  /// - Returns: nil when the deadline has passed.
  /// - Throws: `PeerError`: `replaced` when another process receives now, `notActive` once it was
  ///   ended, also during the wait; or what the container refuses.
  /// - Complexity: two renames, and some cheap calls; whatever the size of the file.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func next(until deadline: ContinuousClock.Instant) throws -> PeerFile? {
    try betweenPeers(action) {
      while let entry = try consumer.next(until: deadline) {
        if let file = try PeerFile.open(entry) { return file }
      }
      return nil
    }
  }

  /// The next file; see the form without `async`. Cancelling the task ends the wait as `cancelled`.
  public func next(until deadline: ContinuousClock.Instant) async throws -> PeerFile? {
    try await betweenPeers(action) {
      while let entry = try await consumer.next(until: deadline) {
        if let file = try await Blocking.run({ try PeerFile.open(entry) }) { return file }
      }
      return nil
    }
  }

  /// Calls a handler with each file from now on, one at a time and in order; when it returns, the file
  /// is acknowledged and, unless it was claimed or moved away, deleted. What it throws fails the file:
  /// its sender learns it.
  ///
  /// - Parameters:
  ///   - queue: where. Looking for the next file and deleting the last happen there, too.
  ///   - failure: called once, there, if receiving ends otherwise than by `end()`: `replaced`, or what
  ///     the container refuses.
  ///   - handler: gets the file. It may acknowledge, fail or release it itself, earlier.
  /// - Precondition: it is called once.
  public func handle(
    on queue: DispatchQueue, failure: @escaping @Sendable (PeerError) -> Void = { _ in },
    _ handler: @escaping @Sendable (PeerFile) throws -> Void
  ) {
    delivery.withLock { delivery in
      precondition(delivery == nil, "a receiver of files has one handler")
      delivery = MessageDelivery(
        consumer, action, on: queue, failure: failure, open: PeerFile.open, handler)
    }
  }

  /// Whether nothing waits and nothing is being handled.
  ///
  /// - Throws: as `next`.
  /// - Complexity: two listings, of what waits and of what was taken.
  public func isIdle() throws -> Bool { try betweenPeers(action) { try consumer.isIdle() } }

  /// Ends receiving; what was not acknowledged is delivered again to the next. Once is enough.
  ///
  /// Whoever waits in `next` is woken at once. A handler that is running goes on.
  public func end() {
    delivery.withLock { $0 }?.end()
    consumer.end()
  }

  private var action: String { "receive files for \"\(name)\"" }
}
