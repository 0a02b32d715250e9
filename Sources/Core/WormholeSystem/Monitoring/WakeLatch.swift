package import Dispatch
import Synchronization

/// A latch that stays raised until a waiter looks. A wake-up is a hint, never the data, and any
/// number of them before the next look count as one.
package final class WakeLatch: Sendable {
  private struct State {
    var isRaised = false
    var sleeper: (@Sendable () -> Void)?
    var blocked = 0
    /// Created by the first thread that blocks, because most latches are never waited for.
    var semaphore: ThreadSemaphore?
    /// When the next timer raises it.
    var alarm: ContinuousClock.Instant?
    var handler: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  package init() {}

  /// For tests: whether anything waits.
  package var isAwaited: Bool { state.withLock { $0.sleeper != nil || $0.blocked > 0 } }

  /// Also calls a handler each time it is raised; it replaces the previous handler.
  package func call(_ handler: @escaping @Sendable () -> Void) {
    state.withLock { $0.handler = handler }
  }

  /// Wakes all waiters, or the next one.
  package func raise() {
    let (sleeper, blocked, semaphore, handler) = state.withLock { state in
      let waiting = (state.sleeper, state.blocked, state.semaphore, state.handler)
      // Excludes: a raise between a waiter's look at `isRaised` and its sleep.
      state.isRaised = state.sleeper == nil && state.blocked == 0
      state.sleeper = nil
      state.blocked = 0
      return waiting
    }
    sleeper?()
    for _ in 0..<blocked { semaphore?.signal() }
    handler?()
  }

  /// Raises it at a moment, or a day from now if that is earlier: the look that follows asks again.
  package func raise(at moment: ContinuousClock.Instant) {
    let moment = min(moment, .now + .seconds(86_400))
    // A timer cannot be taken back, and a wait of an hour may be one of thousands.
    let isFirst = state.withLock { state in
      if let alarm = state.alarm, alarm <= moment { return false }
      state.alarm = moment
      return true
    }
    guard isFirst else { return }
    Timers.after(ContinuousClock.now.duration(to: moment)) { [weak self] in
      guard let self else { return }
      state.withLock { if $0.alarm == moment { $0.alarm = nil } }
      raise()
    }
  }

  /// Blocks the calling thread until the latch is raised or the deadline has passed, but only
  /// briefly if no thread can be created that would raise it.
  package func block(until deadline: ContinuousClock.Instant?) {
    let semaphore = state.withLock { state -> ThreadSemaphore? in
      if exchange(&state.isRaised, with: false) { return nil }
      state.blocked += 1
      let semaphore = state.semaphore ?? ThreadSemaphore()
      state.semaphore = semaphore
      return semaphore
    }
    guard let semaphore else { return }
    // Then perhaps no thread raises it: the caller looks again after a while.
    let isStalled = Timers.areStalled
    defer { if isStalled { Timers.callStalled() } }
    let limit =
      isStalled ? [deadline, .now + Timers.stalledWait].compactMap(\.self).min() : deadline
    guard !semaphore.wait(until: limit) else { return }
    let wasRaised = state.withLock { state in
      guard state.blocked > 0 else { return true }
      state.blocked -= 1
      return false
    }
    // Raised at the moment of giving up: consume the signal, or the next wait would end at once.
    if wasRaised { _ = semaphore.wait(until: nil) }
  }

  /// Calls a closure once when the latch is raised or the deadline has passed, or earlier: an
  /// earlier wait's deadline raises it, too. One closure waits at a time.
  ///
  /// - Parameter body: Called on the thread that raises the latch, so it must be short.
  /// - Returns: False if the latch is raised; then the closure is not called.
  package func wake(
    until deadline: ContinuousClock.Instant?, _ body: @escaping @Sendable () -> Void
  ) -> Bool {
    let isRaised = state.withLock { state in
      if exchange(&state.isRaised, with: false) { return true }
      precondition(state.sleeper == nil, "one closure waits for a latch at a time")
      state.sleeper = body
      return false
    }
    guard !isRaised else { return false }
    if let deadline { raise(at: deadline) }
    return true
  }
}

extension WakeLatch {
  /// Ends the wait of the closure.
  ///
  /// - Returns: False if the latch was raised, and the closure called.
  package func sleepsNoMore() -> Bool {
    state.withLock { $0.sleeper.take() != nil }
  }
}

extension Duration {
  package var dispatchInterval: DispatchTimeInterval {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return .nanoseconds(0) }
    // A century is long enough for a deadline, and does not overflow.
    let bounded = min(seconds, 3_155_760_000)
    return .nanoseconds(Int(bounded) * 1_000_000_000 + Int(attoseconds / 1_000_000_000))
  }
}
