package import Dispatch
import Synchronization

/// A latch that stays raised until a waiter looks. A wake-up is a hint, never the data, and any
/// number of them before the next look count as one.
package final class WakeLatch: Sendable {
  private struct State {
    var isRaised = false
    var sleeper: (@Sendable () -> Void)?
    /// Those of further tasks.
    var others: [@Sendable () -> Void] = []
    var blocked = 0
    /// Whether several have waited at once. The first of them that comes then takes a wake-up that was
    /// meant for all, so each looks again after a while.
    var isShared = false
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
    let (sleeper, others, blocked, semaphore, handler) = state.withLock { state in
      let waiting = (state.sleeper, state.others, state.blocked, state.semaphore, state.handler)
      // Excludes: a raise between a waiter's look at `isRaised` and its sleep.
      state.isRaised = state.sleeper == nil && state.blocked == 0
      state.sleeper = nil
      state.others = []
      state.blocked = 0
      return waiting
    }
    sleeper?()
    for other in others { other() }
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
    let waiting = state.withLock { state -> (ThreadSemaphore, isShared: Bool)? in
      if exchange(&state.isRaised, with: false) { return nil }
      if state.sleeper != nil || state.blocked > 0 { state.isShared = true }
      state.blocked += 1
      let semaphore = state.semaphore ?? ThreadSemaphore()
      state.semaphore = semaphore
      return (semaphore, state.isShared)
    }
    guard let (semaphore, isShared) = waiting else { return }
    let deadline = isShared ? Self.sharedLimit(deadline) : deadline
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
  /// earlier wait's deadline raises it, too.
  ///
  /// - Parameter body: Called on the thread that raises the latch, so it must be short.
  /// - Returns: False if the latch is raised; then the closure is not called.
  package func wake(
    until deadline: ContinuousClock.Instant?, _ body: @escaping @Sendable () -> Void
  ) -> Bool {
    let waiting = state.withLock { state -> (isRaised: Bool, isShared: Bool) in
      if exchange(&state.isRaised, with: false) { return (true, false) }
      if state.sleeper == nil {
        state.isShared = state.isShared || state.blocked > 0
        state.sleeper = body
      } else {
        state.isShared = true
        state.others.append(body)
      }
      return (false, state.isShared)
    }
    guard !waiting.isRaised else { return false }
    if let limit = waiting.isShared ? Self.sharedLimit(deadline) : deadline { raise(at: limit) }
    return true
  }

  private static func sharedLimit(
    _ deadline: ContinuousClock.Instant?
  ) -> ContinuousClock.Instant {
    let next = ContinuousClock.now + .seconds(1)
    return deadline.map { min($0, next) } ?? next
  }
}

extension WakeLatch {
  /// Ends the wait of the only closure.
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
