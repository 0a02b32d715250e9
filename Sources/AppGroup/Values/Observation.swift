import Dispatch
import Synchronization
import SystemCalls

/// An observer of a value or a notification, until it is cancelled or forgotten.
public final class Observation: Sendable {
  /// How changes are noticed.
  public enum Detection: Sendable, Hashable {
    /// By events of the kernel, within a fraction of a millisecond.
    case events
    /// By looking five times a second, and why: a network file system, or no watch left.
    case polling(reason: String)
  }

  private let watch: Watch
  private let delivery: any Cancellable

  init(watch: Watch, delivery: any Cancellable) {
    self.watch = watch
    self.delivery = delivery
  }

  deinit { cancel() }

  /// How changes are noticed.
  public var detection: Detection {
    switch watch.detection {
    case .events: .events
    case .polling(let reason): .polling(reason: reason)
    }
  }

  /// Ends the observation and frees its watch. No call of the handler begins after this returns; one
  /// that is running on another thread goes on to its end. May be called in the handler.
  public func cancel() {
    delivery.cancel()
    watch.cancel()
  }
}

protocol Cancellable: Sendable {
  func cancel()
}

/// Calls a handler on a queue, one call at a time, with what the truth is then: however many signals
/// come while a call is pending, one look is enough.
final class Delivery<State: Sendable>: Cancellable {
  private struct Condition {
    var isOpen = false
    var isScheduled = false
    var isCancelled = false
    var state: State
  }

  private let condition: Mutex<Condition>
  private let queue: DispatchQueue
  private let look: @Sendable (State) -> (State, (@Sendable () -> Void)?)

  /// - Parameter look: gets the last state that was delivered, and returns the state now with the
  ///   call to make if it differs.
  init(
    initial: State, on target: DispatchQueue,
    look: @escaping @Sendable (State) -> (State, (@Sendable () -> Void)?)
  ) {
    condition = Mutex(Condition(state: initial))
    // A serial queue of its own keeps the calls in order even if the target is concurrent.
    queue = DispatchQueue(label: "wormhole.delivery", target: target)
    self.look = look
  }

  /// Begins to deliver. Signals that came before are answered now; so the order is: watch, read
  /// what is known, open.
  func open(known state: State? = nil, signalled: Bool = false) {
    let mustSchedule = condition.withLock { condition in
      if let state { condition.state = state }
      condition.isOpen = true
      let mustSchedule = condition.isScheduled || signalled
      condition.isScheduled = mustSchedule
      return mustSchedule
    }
    if mustSchedule { queue.async { self.deliver() } }
  }

  /// Something may have changed.
  func signal() {
    let mustSchedule = condition.withLock { condition in
      // Excludes: a signal after the look of a pending call and before the end of that call.
      guard !condition.isCancelled, !condition.isScheduled else { return false }
      condition.isScheduled = true
      return condition.isOpen
    }
    if mustSchedule { queue.async { self.deliver() } }
  }

  /// Looks again as if this state had been delivered last.
  func redeliver(from state: State) {
    condition.withLock { $0.state = state }
    signal()
  }

  private func deliver() {
    let state = condition.withLock { condition -> State? in
      condition.isScheduled = false
      return condition.isCancelled ? nil : condition.state
    }
    guard let state else { return }
    let (next, call) = look(state)
    let mayCall = condition.withLock { condition in
      condition.state = next
      return !condition.isCancelled
    }
    if mayCall { call?() }
  }

  func cancel() {
    condition.withLock { $0.isCancelled = true }
  }
}
