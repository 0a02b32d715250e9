import AppGroup
import Dispatch
import Synchronization

/// Gives a handler one delivery after another, on the queue it asked for, and settles each when the
/// handler returns. No thread and no task waits meanwhile: a look for the next one is enqueued when the
/// consumer is woken, and after each delivery.
final class Handling<Delivered: PeerDelivery>: Sendable {
  private struct State {
    /// Makes the looks, one at a time; its work has this object weakly.
    var looks: ChangeDelivery<Void>?
    /// A delivery that was handled and could not be settled yet, for lack of space perhaps.
    var unsettled: Handled?
    var isEnded = false
  }

  private struct Handled: Sendable {
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

  private let consumer: Queue.Consumer
  private let action: String
  private let open: @Sendable (QueueEntry) throws -> Delivered?
  private let failure: @Sendable (PeerError) -> Void
  private let handler: @Sendable (Delivered) throws -> Void
  private let state = Mutex(State())

  /// - Parameter open: makes the delivery of an entry; nil for an entry that has ended by this.
  init(
    _ consumer: Queue.Consumer, _ action: String, on queue: DispatchQueue,
    failure: @escaping @Sendable (PeerError) -> Void,
    open: @escaping @Sendable (QueueEntry) throws -> Delivered?,
    _ handler: @escaping @Sendable (Delivered) throws -> Void
  ) {
    self.consumer = consumer
    self.action = action
    self.open = open
    self.failure = failure
    self.handler = handler
    let looks = ChangeDelivery<Void>(initial: (), on: queue) { [weak self] _ in ((), self?.look()) }
    state.withLock { $0.looks = looks }
    // Woken from now on, and then a first look at the entries that wait already.
    consumer.onWake { [weak looks] in looks?.signal() }
    looks.open(signalled: true)
  }

  deinit { end() }

  /// Nothing further is handed over; the delivery that is being handled is settled when its handler returns.
  func end() {
    let looks = state.withLock { state in
      state.isEnded = true
      return state.looks
    }
    looks?.cancel()
  }

  /// - Returns: the next call; nil when there is nothing to do before the next wake-up.
  private func look() -> (@Sendable () -> Void)? {
    do {
      if let handled = state.withLock({ $0.unsettled }) {
        try handled.settle()
        state.withLock { $0.unsettled = nil }
      }
      while let entry = try consumer.next(until: .now) {
        guard let delivered = try open(entry) else { continue }
        return { self.handle(delivered) }
      }
      return nil
    } catch {
      return { self.stop(error) }
    }
  }

  private func handle(_ delivered: Delivered) {
    let handled: Handled
    do {
      try handler(delivered)
      handled = Handled(delivered: delivered, failure: nil)
    } catch {
      handled = Handled(delivered: delivered, failure: "\(error)")
    }
    do {
      try handled.settle()
      signal()
    } catch {
      state.withLock { $0.unsettled = handled }
      stop(error)
    }
  }

  /// Tries again later if that may help; otherwise receiving has ended.
  private func stop(_ error: any Error) {
    let error = PeerError(any: error, action)
    if [.noSpace, .tooManyOpenFiles].contains(error.underlying?.code) {
      Blocking.timers.asyncAfter(deadline: .now() + Self.retry) { [weak self] in self?.signal() }
      return
    }
    let isFirst = state.withLock { state in
      // Excludes: a failure that is told of after `end()`, or twice.
      defer { state.isEnded = true }
      return !state.isEnded
    }
    guard isFirst else { return }
    consumer.close()
    failure(error)
  }

  private func signal() { state.withLock { $0.looks }?.signal() }
}
