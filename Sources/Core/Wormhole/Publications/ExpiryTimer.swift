import Synchronization
import WormholeSystem

/// Calls a handler when a value expires, because no event of the file system reports that: one
/// timer for each observer that has seen a value that expires.
///
/// It looks at the time of day, as the expiry does: if the clock is set forward, it is late by at most
/// `interval`.
package final class ExpiryTimer: Sendable {
  private struct State {
    var handler: @Sendable () -> Void = {}
    var expiry: Int64?
    var isReported = false
    /// When it looks at the clock; nil if it does not.
    var look: ContinuousClock.Instant?
  }

  private let state = Mutex(State())
  private static let interval: UInt64 = 10_000_000_000

  /// The time until the next look, which comes at the same moment for all timers of the process.
  private static var pause: Duration { .nanoseconds(interval - bootTimeNanoseconds() % interval) }

  package init() {}

  /// Sets the handler; it is called once for each expiry, and perhaps once more. It must be short.
  package func use(_ handler: @escaping @Sendable () -> Void) {
    state.withLock { $0.handler = handler }
  }

  /// Sets the moment of the next call, in nanoseconds since 1970; nil changes nothing, because an
  /// extra call does no harm. Nor does the last moment once it has passed: on etcd a value exists
  /// until etcd removes it, which an event reports.
  package func set(_ expiry: Int64?) {
    guard let expiry else { return }
    let isNews = state.withLock { state in
      guard expiry > PublicationRecord.now || state.expiry != expiry else { return false }
      (state.expiry, state.isReported) = (expiry, false)
      return true
    }
    if isNews { lookLater() }
  }

  private func lookLater() {
    let next = state.withLock { state -> ContinuousClock.Instant? in
      guard let expiry = state.expiry, !state.isReported else { return nil }
      let left = max(.zero, PublicationRecord.time(until: expiry))
      let moment = ContinuousClock.now + min(left, Self.pause)
      if let look = state.look, look <= moment { return nil }
      state.look = moment
      return moment
    }
    guard let next else { return }
    Timers.after(next - .now) { [weak self] in self?.look(dueAt: next) }
  }

  private func look(dueAt moment: ContinuousClock.Instant) {
    let handler = state.withLock { state -> (@Sendable () -> Void)? in
      // An earlier look has taken its place.
      guard state.look == moment else { return nil }
      state.look = nil
      guard let expiry = state.expiry, expiry <= PublicationRecord.now else { return nil }
      state.isReported = true
      return state.handler
    }
    handler?()
    lookLater()
  }
}
