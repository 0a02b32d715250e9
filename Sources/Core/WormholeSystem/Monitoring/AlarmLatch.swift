import Dispatch
import Synchronization

/// A latch that can also be raised at a moment, and that calls a handler.
package final class AlarmLatch: Sendable {
  package let latch = WakeLatch()
  private let handler = Mutex<(@Sendable () -> Void)?>(nil)
  /// Whether it was raised because of a change.
  private let hasChanged = Atomic(false)
  private let alarm = Mutex<ContinuousClock.Instant?>(nil)

  package init() {}

  package func call(_ handler: @escaping @Sendable () -> Void) {
    self.handler.withLock { $0 = handler }
  }

  package func raise() {
    latch.raise()
    handler.withLock { $0 }?()
  }

  /// Raises it, and notes that something other than the data has changed.
  package func raiseForChange() {
    hasChanged.store(true, ordering: .sequentiallyConsistent)
    raise()
  }

  /// Whether that was noted since the last call of this.
  package func takeChange() -> Bool {
    hasChanged.exchange(false, ordering: .sequentiallyConsistent)
  }

  /// Raises it at a moment, or some days earlier: the look that follows asks again.
  package func raise(at moment: ContinuousClock.Instant) {
    let moment = min(moment, .now + .seconds(86_400))
    let isFirst = alarm.withLock { alarm in
      // Excludes: one timer for each look that finds nothing yet.
      if let alarm, alarm <= moment { return false }
      alarm = moment
      return true
    }
    guard isFirst else { return }
    Timers.after(ContinuousClock.now.duration(to: moment)) { [weak self] in
      guard let self else { return }
      self.alarm.withLock { if $0 == moment { $0 = nil } }
      self.raise()
    }
  }
}
