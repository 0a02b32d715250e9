package import Dispatch
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

  /// Of something that begins with what another observation tells; both end together.
  package init(_ beginning: Observation, delivery: any Cancellable) {
    watch = beginning.watch
    self.delivery = Both(beginning: beginning, delivery: delivery)
  }

  private struct Both: Cancellable {
    let beginning: Observation
    let delivery: any Cancellable

    func cancel() {
      beginning.cancel()
      delivery.cancel()
    }
  }

  deinit { cancel() }

  /// How changes are noticed.
  public var detection: Detection {
    switch watch.detection {
    case .events: .events
    case .polling(let reason): .polling(reason: reason)
    }
  }

  /// Ends the observation and frees its watch. May be called in the handler.
  ///
  /// A call that another thread is making then, or is just about to make, goes on to its end; no
  /// further one is made. To have none at all after it, cancel on the handler's own serial queue.
  public func cancel() {
    delivery.cancel()
    watch.cancel()
  }
}

package protocol Cancellable: Sendable {
  func cancel()
}

/// Calls a handler on a queue, one call at a time, with what the truth is then: however many signals
/// come while a call is pending, one look is enough.
package final class Delivery<State: Sendable>: Cancellable {
  /// What has been enqueued. Calls follow one another even if the queue is concurrent, because the
  /// next is enqueued only when the last has ended; a serial queue in front of it would do the same
  /// with a hop more for each call.
  private enum Phase {
    case idle
    case enqueued
    case running
    /// And signalled since: what the call saw may be old already.
    case runningSignalled
  }

  private struct Condition {
    var isOpen = false
    var phase = Phase.idle
    var isCancelled = false
    var state: State
    /// Set anew while a call was looking, whose result is then not the state to begin from.
    var isReset = false
  }

  private let condition: Mutex<Condition>
  private let queue: DispatchQueue
  private let look: @Sendable (State) -> (State, (@Sendable () -> Void)?)

  /// - Parameter look: gets the last state that was delivered, and returns the state now with the
  ///   call to make if it differs.
  package init(
    initial: State, on queue: DispatchQueue,
    look: @escaping @Sendable (State) -> (State, (@Sendable () -> Void)?)
  ) {
    condition = Mutex(Condition(state: initial))
    self.queue = queue
    self.look = look
  }

  /// Begins to deliver. Signals that came before are answered now; so the order is: watch, read
  /// what is known, open.
  package func open(known state: State? = nil, signalled: Bool = false) {
    let mustEnqueue = condition.withLock { condition in
      if let state { condition.state = state }
      condition.isOpen = true
      if signalled { condition.phase = .enqueued }
      return condition.phase == .enqueued
    }
    if mustEnqueue { enqueue() }
  }

  /// Something may have changed.
  package func signal() {
    let mustEnqueue = condition.withLock { condition in
      // Excludes: a signal after the look of a call and before its end, which would be lost.
      guard !condition.isCancelled else { return false }
      switch condition.phase {
      case .idle:
        condition.phase = .enqueued
        return condition.isOpen
      case .running:
        condition.phase = .runningSignalled
        return false
      case .enqueued, .runningSignalled: return false
      }
    }
    if mustEnqueue { enqueue() }
  }

  /// Looks again as if this state had been delivered last.
  func redeliver(from state: State) {
    condition.withLock { condition in
      condition.state = state
      condition.isReset = true
    }
    signal()
  }

  private func enqueue() { queue.async { self.deliver() } }

  private func deliver() {
    let state = condition.withLock { condition -> State? in
      condition.phase = .running
      condition.isReset = false
      return condition.isCancelled ? nil : condition.state
    }
    guard let state else { return }
    let (next, call) = look(state)
    let mayCall = condition.withLock { condition in
      if !condition.isReset { condition.state = next }
      return !condition.isCancelled
    }
    if mayCall { call?() }
    let mustEnqueue = condition.withLock { condition in
      let isSignalled = condition.phase == .runningSignalled && !condition.isCancelled
      condition.phase = isSignalled ? .enqueued : .idle
      return isSignalled
    }
    if mustEnqueue { enqueue() }
  }

  package func cancel() {
    condition.withLock { $0.isCancelled = true }
  }
}
