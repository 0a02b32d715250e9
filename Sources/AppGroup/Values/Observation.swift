public import Dispatch
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

  /// What is so now counts as delivered, unless a change has been delivered meanwhile.
  func begin(with state: State, unless isChanged: (State) -> Bool) {
    condition.withLock { condition in
      if !isChanged(condition.state) { condition.state = state }
    }
  }

  /// Something may have changed.
  func signal() {
    let mustSchedule = condition.withLock { condition in
      // Excludes: a signal after the look of a pending call and before the end of that call.
      guard !condition.isCancelled, !condition.isScheduled else { return false }
      condition.isScheduled = true
      return true
    }
    if mustSchedule { queue.async { self.deliver() } }
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
