public import FoundationEssentials
import Synchronization
import Wormhole
import WormholeInspection
import WormholeSystem

/// A delivery of a queue, to be acknowledged when it is handled: a `PeerMessage` or a `PeerFile`.
///
/// A delivery that is neither acknowledged, failed nor released is delivered again, marked, to the
/// next receiver. The first of these calls counts; further calls have no effect.
///
/// ```swift
/// func acknowledgeLate(_ delivery: any PeerDelivery) throws {
///   if delivery.isRedelivery { print("again, from \(delivery.sender)") }
///   try delivery.acknowledge()
/// }
/// ```
public protocol PeerDelivery: Sendable {
  /// The transfer's id.
  var id: String { get }
  /// The sender, by the name that it gave itself.
  var sender: String { get }
  /// When it was sent, by its sender's clock, which never goes back.
  var sent: Date { get }
  /// Whether it was delivered before, and perhaps handled: to a process that ended, was replaced,
  /// or gave it back.
  var isRedelivery: Bool { get }
  /// The number of this attempt: 1 for the first. Attempts of receivers that died count.
  var attempt: Int { get }

  /// Ends it as processed: it is never delivered again.
  ///
  /// - Throws: `WormholeError`: `replaced` if another process receives now, which then gets it; or an
  ///   error of the container: the call may be repeated.
  func acknowledge() throws

  /// Ends it as failed: it is never delivered again, and its sender learns why.
  ///
  /// - Parameters:
  ///   - reason: the reason for the sender.
  ///   - isKept: whether it is kept, so that `PeerSession.failures(for:)` lists it, and
  ///     `retry(failure:)` sends it again.
  /// - Throws: as `acknowledge()`.
  func fail(_ reason: String, isKept: Bool) throws

  /// Ends a failed attempt: it is delivered again after a pause. Meanwhile other deliveries are made,
  /// including later ones of its sender. After the last of the receiver's `attempts` it ends as
  /// failed, with this reason, and is kept.
  ///
  /// - Parameters:
  ///   - pause: the minimum time before it is delivered again.
  ///   - reason: why the attempt failed.
  /// - Throws: as `acknowledge()`.
  /// - Complexity: an open, a write and a close.
  func retry(after pause: Duration, because reason: String) throws

  /// Gives it back unhandled: this delivery is no attempt, and it is delivered again at once.
  /// Closing a receiver does this with all that it has.
  ///
  /// - Throws: as `acknowledge()`.
  /// - Complexity: an open, a write and a close.
  func giveBack() throws
}

/// The receiver of a name's messages, or files, until it is closed or released. Thread-safe.
///
/// Only one process receives for a name at a time. A stopped one is replaced by the next process
/// that wants to receive. When the stopped one continues, it learns of that, and its deliveries do
/// no harm: they were delivered again, marked as redeliveries, and the files have moved.
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
    let queue: PlainQueue
    /// Whether `open` calls the file system.
    let blocks: Bool
    /// - Returns: nil for an entry that has ended by this call.
    let open: @Sendable (PlainEntry) throws -> Delivered?
  }

  /// The peer for which it receives.
  public let name: String
  let consumer: PlainConsumer
  let opening: Opening
  let handling = Mutex(Handling())
  /// An entry that could not be opened for lack of descriptors or space: the next one to deliver.
  private let unopened = Mutex<PlainEntry?>(nil)

  init(_ consumer: PlainConsumer, for name: String, _ opening: Opening) {
    self.consumer = consumer
    self.name = name
    self.opening = opening
  }

  deinit { close() }

  /// The next delivery; waits for one if there is none. One caller waits at a time.
  ///
  /// A file whose size differs from the sent size is not handed over: it fails, and its sender
  /// learns of it. A file claimed by a process that died before acknowledging is acknowledged.
  ///
  /// - Parameter deadline: when to stop waiting; one in the past means "only if there is one now".
  /// - Returns: nil when the deadline has passed.
  /// - Throws: `WormholeError.Code.replaced` if another process receives now; `.notActive` once it was
  ///   closed, even during the wait; or an error of the container.
  /// - Complexity: one rename, open, read and close for all messages that were stored together; for
  ///   a file two renames and some cheap calls, whatever its size.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func next(until deadline: ContinuousClock.Instant) throws -> Delivered? {
    try betweenPeers(action) {
      while let entry = try takeUnopened() ?? consumer.next(until: deadline) {
        if let delivered = try open(entry) { return delivered }
      }
      return nil
    }
  }

  /// The next delivery; see the form without `async`. Cancelling the task ends the wait as
  /// `cancelled`.
  public func next(until deadline: ContinuousClock.Instant) async throws -> Delivered? {
    try await betweenPeers(action) {
      while true {
        var next = takeUnopened()
        if next == nil { next = try await consumer.next(until: deadline) }
        guard let entry = next else { return nil }
        let delivered =
          try opening.blocks ? await Blocking.run { try self.open(entry) } : open(entry)
        if let delivered { return delivered }
      }
    }
  }

  private func takeUnopened() -> PlainEntry? { unopened.withLock { $0.take() } }

  private func open(_ entry: PlainEntry) throws -> Delivered? {
    do {
      return try opening.open(entry)
    } catch  where WormholeError.maySucceedLater(error) {
      unopened.withLock { $0 = entry }
      throw error
    }
  }

  /// Whether nothing waits and nothing is being handled.
  ///
  /// - Throws: as `next`.
  /// - Complexity: two listings, of the entries that wait and of those taken.
  public func isIdle() throws -> Bool { try isIdle(countsTaken: true) }

  /// - Parameter countsTaken: whether deliveries left for the next receiver count.
  package func isIdle(countsTaken: Bool) throws -> Bool {
    try betweenPeers(action) { try consumer.isIdle(countsTaken: countsTaken) }
  }

  /// Ends receiving; everything that was not acknowledged is delivered again to the next receiver.
  /// Further calls have no effect.
  ///
  /// A caller that waits in `next` is woken at once. A delivery whose handler is running ends when
  /// the handler returns, unless another process has received it by then.
  public func close() { end { $0.close() } }

  /// Ends receiving: for the other processes as if its process had died, here as `close`.
  package func abandon() { end { $0.abandon() } }

  private func end(_ end: (PlainConsumer) -> Void) {
    let looks = handling.withLock { handling in
      handling.isEnded = true
      return handling.looks
    }
    looks?.cancel()
    end(consumer)
    // The next receiver gets it.
    _ = takeUnopened()
  }

  /// For tests: whether a caller waits in `next`.
  var isAwaited: Bool { consumer.isAwaited }

  var action: String { "receive \(opening.what) for \"\(name)\"" }
}
