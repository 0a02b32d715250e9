import AppGroup
import Dispatch
import Synchronization

/// Gives a handler one message after another, on the queue it asked for, and settles each when the
/// handler returns. No thread and no task waits meanwhile: a look at what waits is enqueued when the
/// consumer is woken, and after each message.
final class MessageDelivery<Message: DeliveredMessage>: Sendable {
  private struct State {
    /// Makes the looks, one at a time; its work has this object weakly.
    var looks: Delivery<Void>?
    /// A message that was handled and could not be settled yet, for want of space perhaps.
    var unsettled: Handled?
    var isEnded = false
  }

  private struct Handled: Sendable {
    let message: Message
    /// Why its handler failed; nil if it did not.
    let failure: String?

    func settle() throws {
      guard let failure else { return try message.acknowledge() }
      try message.fail(failure, isKept: false)
    }
  }

  /// What is used up now may be there again after this.
  private static var retry: DispatchTimeInterval { .milliseconds(200) }

  private let consumer: Queue.Consumer
  private let action: String
  private let open: @Sendable (QueueEntry) throws -> Message?
  private let failure: @Sendable (PeerError) -> Void
  private let handler: @Sendable (Message) throws -> Void
  private let state = Mutex(State())

  /// - Parameter open: makes the message of an entry; nil for what it has settled itself.
  init(
    _ consumer: Queue.Consumer, _ action: String, on queue: DispatchQueue,
    failure: @escaping @Sendable (PeerError) -> Void,
    open: @escaping @Sendable (QueueEntry) throws -> Message?,
    _ handler: @escaping @Sendable (Message) throws -> Void
  ) {
    self.consumer = consumer
    self.action = action
    self.open = open
    self.failure = failure
    self.handler = handler
    let looks = Delivery<Void>(initial: (), on: queue) { [weak self] _ in ((), self?.look()) }
    state.withLock { $0.looks = looks }
    // Woken from now on, and then a look at what is there already.
    consumer.onWake { [weak looks] in looks?.signal() }
    looks.open(signalled: true)
  }

  deinit { end() }

  /// No further message is handed over; the one that is being handled goes on, and is settled.
  func end() {
    let looks = state.withLock { state in
      state.isEnded = true
      return state.looks
    }
    looks?.cancel()
  }

  /// - Returns: what is to be called; nil when there is nothing to do before the next wake-up.
  private func look() -> (@Sendable () -> Void)? {
    do {
      if let handled = state.withLock({ $0.unsettled }) {
        try handled.settle()
        state.withLock { $0.unsettled = nil }
      }
      while let entry = try consumer.next(until: .now) {
        guard let message = try open(entry) else { continue }
        return { self.handle(message) }
      }
      return nil
    } catch {
      return { self.stop(error) }
    }
  }

  private func handle(_ message: Message) {
    let handled: Handled
    do {
      try handler(message)
      handled = Handled(message: message, failure: nil)
    } catch {
      handled = Handled(message: message, failure: "\(error)")
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
    consumer.end()
    failure(error)
  }

  private func signal() { state.withLock { $0.looks }?.signal() }
}

/// What came in a queue, and is acknowledged or failed when it is handled.
protocol DeliveredMessage: Sendable {
  func acknowledge() throws
  func fail(_ reason: String, isKept: Bool) throws
}

extension PeerMessage: DeliveredMessage {}
extension PeerFile: DeliveredMessage {}
