public import Dispatch
import Synchronization
public import Wormhole
import WormholeSystem

// No thread and no task waits for the next delivery: a look for it is enqueued when the consumer is
// woken, and after each delivery.
extension PeerReceiver {
  struct Handling {
    var looks: ChangeDelivery<Void>?
    /// A delivery that was handled and could not be settled yet, perhaps for lack of space.
    fileprivate var unsettled: Handled?
    /// A delivery that the handler could not take yet.
    fileprivate var delayed: Delivered?
    /// Whether an obstacle that may pass was reported, and is still there.
    fileprivate var isReported = false
    var isEnded = false
  }

  /// A delivery, and why its handler failed; nil if it did not.
  fileprivate typealias Handled = (delivered: Delivered, failure: String?)

  /// What becomes of a delivery that a handler got.
  package enum Outcome: Sendable {
    /// It is acknowledged, or fails.
    case ended(failure: String?)
    /// The handler gets it again in a moment. The reason is reported once.
    case delayed(any Error)
    /// Nothing: the next receiver gets it again.
    case left
  }

  /// From now on, calls a handler with each delivery, one at a time and in order. A delivery is
  /// acknowledged when the handler returns, and fails with an error that the handler throws. A file
  /// is then deleted, unless it was claimed or moved away.
  ///
  /// The look for the next one and the acknowledgement also run on the handler's queue; nothing
  /// waits there. A lack of space or of descriptors only causes a delay.
  ///
  /// - Parameters:
  ///   - queue: where the handler is called.
  ///   - failure: called once, there, if receiving ends without `close()`: `replaced`, or an error
  ///     of the container; or at once, with `notHandled`, if the receiver already has a handler:
  ///     that one continues, and the new one is not called.
  ///   - handler: gets the delivery. It may acknowledge, fail or release it itself, earlier.
  public func handle(
    on queue: DispatchQueue, failure: @escaping @Sendable (WormholeError) -> Void = { _ in },
    _ handler: @escaping @Sendable (Delivered) throws -> Void
  ) {
    offer(on: queue, failure: failure) { delivered in
      do {
        try handler(delivered)
        return .ended(failure: nil)
      } catch {
        return .ended(failure: "\(error)")
      }
    }
  }

  /// Calls a handler like `handle`; the handler says what becomes of each delivery.
  package func offer(
    on queue: DispatchQueue, failure: @escaping @Sendable (WormholeError) -> Void,
    _ handler: @escaping @Sendable (Delivered) -> Outcome
  ) {
    let looks = ChangeDelivery<Void>(initial: (), on: queue) { [weak self] _ in
      ((), self?.look(handler, failure))
    }
    let isFirst = handling.withLock { handling in
      guard handling.looks == nil else { return false }
      handling.looks = looks
      return true
    }
    guard isFirst else {
      let error = WormholeError(
        .notHandled, "receive with a second handler", reason: "the receiver has one already",
        remedy: "make another receiver, or do both in one handler")
      return queue.async { failure(error) }
    }
    // Wake-ups count from now on; then a first look at the entries that wait already.
    consumer.onWake { [weak looks] in looks?.signal() }
    looks.open(signalled: true)
  }

  /// - Returns: the next call; nil if there is nothing to do before the next wake-up.
  private func look(
    _ handler: @escaping @Sendable (Delivered) -> Outcome,
    _ failure: @escaping @Sendable (WormholeError) -> Void
  ) -> (@Sendable () -> Void)? {
    do {
      guard let delivered = try take() else { return nil }
      return {
        do {
          if try self.hand(delivered, handler) { self.signal() } else { self.signalLater() }
        } catch {
          self.stop(error, failure)
        }
      }
    } catch {
      return { self.stop(error, failure) }
    }
  }

  /// Hands over the next delivery out of turn, on the handler's queue.
  ///
  /// - Returns: false if nothing waits; nil if the next one has to wait, perhaps for space.
  package func offerNext(_ handler: (Delivered) -> Outcome) -> Bool? {
    Diagnostics.reporting(otherwise: nil) {
      guard let delivered = try take() else { return false }
      return try hand(delivered, handler) ? true : nil
    }
  }

  private func take() throws -> Delivered? {
    if let handled = handling.withLock({ $0.unsettled }) { try settle(handled) }
    if let delayed = handling.withLock({ $0.delayed.take() }) { return delayed }
    let delivered = try next(until: .now)
    handling.withLock { $0.isReported = false }
    return delivered
  }

  /// - Returns: whether the next one may follow at once.
  private func hand(_ delivered: Delivered, _ handler: (Delivered) -> Outcome) throws -> Bool {
    switch handler(delivered) {
    case .ended(let failure): try settle((delivered, failure))
    case .left: break
    case .delayed(let error):
      handling.withLock { $0.delayed = delivered }
      reportOnce(error)
      return false
    }
    return true
  }

  private func settle(_ handled: Handled) throws {
    handling.withLock { $0.unsettled = handled }
    if let failure = handled.failure {
      try handled.delivered.fail(failure, isKept: false)
    } else {
      try handled.delivered.acknowledge()
    }
    handling.withLock { $0.unsettled = nil }
  }

  /// Tries again later if that may help; otherwise receiving has ended.
  private func stop(_ error: any Error, _ failure: (WormholeError) -> Void) {
    let error = WormholeError(any: error, action)
    if error.maySucceedLater {
      reportOnce(error)
      return signalLater()
    }
    let isFirst = handling.withLock { handling in
      // Excludes: a failure that is reported after `close()`, or twice.
      defer { handling.isEnded = true }
      return !handling.isEnded
    }
    guard isFirst else { return }
    consumer.close()
    failure(error)
  }

  private func reportOnce(_ error: any Error) {
    let wasReported = handling.withLock { exchange(&$0.isReported, with: true) }
    if !wasReported { Diagnostics.report(error) }
  }

  private func signal() { handling.withLock { $0.looks }?.signal() }

  private func signalLater() { Blocking.retry { [weak self] in self?.signal() } }
}
