import Synchronization
public import WormholeSystem

/// An observation, which lasts until it is cancelled or released.
///
/// ```swift
/// let token = try container.value("seats").observe(on: .main) { snapshot in
///   print(snapshot.version == nil ? "removed" : "changed")
/// }
/// token.cancel()
/// ```
public final class ObservationToken: Sendable, Watching {
  private let watch: (any Watching)?
  private let delivery: any Cancelling

  /// - Parameter watch: What ends with it: perhaps another observation, which triggers this one; nil for
  ///   an observation inside this process.
  package init(watch: (any Watching)? = nil, delivery: any Cancelling) {
    self.watch = watch
    self.delivery = delivery
  }

  deinit { cancel() }

  /// How changes are noticed.
  public var detection: ChangeDetection { watch?.detection ?? .events }

  /// Ends the observation and frees its watch. The handler may call this method. Further calls have no
  /// effect.
  ///
  /// A call that another thread has begun or is about to begin still runs; no further call follows.
  /// To exclude even that call, cancel on the handler's own serial queue.
  public func cancel() {
    delivery.cancel()
    watch?.cancel()
  }
}

/// Calls a handler on a queue, one call at a time, with the current state. However many signals
/// arrive while a call is pending, one look is enough.
package final class ChangeDelivery<State: Sendable>: Cancelling {
  /// The state of the calls. Calls follow one another even on a concurrent queue, because the next
  /// is enqueued only when the last has ended. A serial queue in front of it would do the same with
  /// one more hop per call.
  private enum Phase {
    case idle
    case enqueued
    case running
    /// Running, and signalled since: the state that the call saw may be outdated.
    case runningSignalled
  }

  private struct Condition {
    var isOpen = false
    var phase = Phase.idle
    var isCancelled = false
    var state: State
    /// Set while a call was looking: its result is then not the state to continue from.
    var isReset = false
  }

  private let condition: Mutex<Condition>
  private let queue: any HandlerQueue
  private let look: @Sendable (State) -> (State, (@Sendable () -> Void)?)

  /// - Parameter look: Receives the last delivered state, and returns the current state together
  ///   with the call to make if it differs.
  package init(
    initial: State, on queue: any HandlerQueue,
    look: @escaping @Sendable (State) -> (State, (@Sendable () -> Void)?)
  ) {
    condition = Mutex(Condition(state: initial))
    self.queue = queue
    self.look = look
    queue.prepare()
  }

  /// Begins to deliver, and answers earlier signals now. So the order is: watch, read the known
  /// state, open.
  package func open(known state: State? = nil, signalled: Bool = false) {
    let mustEnqueue = condition.withLock { condition in
      if let state { condition.state = state }
      condition.isOpen = true
      if signalled { condition.phase = .enqueued }
      return condition.phase == .enqueued
    }
    if mustEnqueue { enqueue() }
  }

  /// Signals that something may have changed.
  package func signal() {
    let mustEnqueue = condition.withLock { condition in
      // Excludes: a signal after the look of a call and before its end is lost.
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
  package func redeliver(from state: State) {
    condition.withLock { condition in
      condition.state = state
      condition.isReset = true
    }
    signal()
  }

  private func enqueue() { queue.enqueue { self.deliver() } }

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
