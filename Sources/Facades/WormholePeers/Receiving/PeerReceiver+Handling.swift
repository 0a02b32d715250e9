public import Dispatch
import Synchronization
import Wormhole
import WormholeSystem

// No thread and no task waits for the next delivery: a look for it is enqueued when the consumer is
// woken, and after each delivery.
extension PeerReceiver {
  /// The calls of a handler.
  struct Handling {
    /// Makes the looks, one at a time.
    var looks: ChangeDelivery<Void>?
    /// A delivery that was handled and could not be settled yet, perhaps for lack of space.
    fileprivate var unsettled: Handled?
    var isEnded = false
  }

  fileprivate struct Handled: Sendable {
    let delivered: Delivered
    /// Why its handler failed; nil if it did not.
    let failure: String?

    func settle() throws {
      guard let failure else { return try delivered.acknowledge() }
      try delivered.fail(failure, isKept: false)
    }
  }

  /// The pause after a lack of space or descriptors.
  private static var retry: DispatchTimeInterval { .milliseconds(200) }

  /// Calls a handler with each delivery from now on, one at a time and in order. A delivery is
  /// acknowledged when the handler returns, and fails with an error that the handler throws. Then a
  /// file is deleted, unless it was claimed or moved away.
  ///
  /// The look for the next one and the acknowledgement run on the handler's queue, too; nothing
  /// waits there. A lack of space or of descriptors only delays.
  ///
  /// - Parameters:
  ///   - queue: where the handler is called.
  ///   - failure: called once, there, if receiving ends without `close()`: `replaced`, or an error
  ///     of the container.
  ///   - handler: gets the delivery. It may acknowledge, fail or release it itself, earlier.
  /// - Precondition: it is called once.
  public func handle(
    on queue: DispatchQueue, failure: @escaping @Sendable (PeerError) -> Void = { _ in },
    _ handler: @escaping @Sendable (Delivered) throws -> Void
  ) {
    let looks = ChangeDelivery<Void>(initial: (), on: queue) { [weak self] _ in
      ((), self?.look(handler, failure))
    }
    handling.withLock { handling in
      precondition(handling.looks == nil, "a receiver has one handler")
      handling.looks = looks
    }
    // Wake-ups count from now on; then a first look at the entries that wait already.
    consumer.onWake { [weak looks] in looks?.signal() }
    looks.open(signalled: true)
  }

  /// - Returns: the next call; nil when there is nothing to do before the next wake-up.
  private func look(
    _ handler: @escaping @Sendable (Delivered) throws -> Void,
    _ failure: @escaping @Sendable (PeerError) -> Void
  ) -> (@Sendable () -> Void)? {
    do {
      if let handled = handling.withLock({ $0.unsettled }) { try settle(handled) }
      while let entry = try consumer.next(until: .now) {
        guard let delivered = try opening.open(entry) else { continue }
        return { self.handle(delivered, handler, failure) }
      }
      return nil
    } catch {
      return { self.stop(error, failure) }
    }
  }

  private func handle(
    _ delivered: Delivered, _ handler: (Delivered) throws -> Void, _ failure: (PeerError) -> Void
  ) {
    var reason: String?
    do {
      try handler(delivered)
    } catch {
      reason = "\(error)"
    }
    do {
      try settle(Handled(delivered: delivered, failure: reason))
      signal()
    } catch {
      stop(error, failure)
    }
  }

  private func settle(_ handled: Handled) throws {
    handling.withLock { $0.unsettled = handled }
    try handled.settle()
    handling.withLock { $0.unsettled = nil }
  }

  /// Tries again later if that may help; otherwise receiving has ended.
  private func stop(_ error: any Error, _ failure: (PeerError) -> Void) {
    let error = PeerError(any: error, action)
    if [.noSpace, .tooManyOpenFiles].contains(error.underlying?.code) {
      Blocking.timers.asyncAfter(deadline: .now() + Self.retry) { [weak self] in self?.signal() }
      return
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

  private func signal() { handling.withLock { $0.looks }?.signal() }
}
