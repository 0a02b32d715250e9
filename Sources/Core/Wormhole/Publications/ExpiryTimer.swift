import Dispatch
import Synchronization

/// Calls a handler when a value expires, because no event of the file system reports that: one
/// timer for each observer that has seen a value that expires.
///
/// It runs by the time of day, as the expiry does: if the clock is set, it is early or late with it.
package final class ExpiryTimer: Sendable {
  private struct State {
    var timer: (any DispatchSourceTimer)?
    var handler: @Sendable () -> Void = {}
    var expiry: Int64?
  }

  private let state = Mutex(State())
  /// Calls of the handlers, which are short.
  private static let queue = DispatchQueue(label: "wormhole.expiry")

  package init() {}

  deinit { state.withLock { $0.timer?.cancel() } }

  /// Sets the handler; it is called once for each expiry, and perhaps once more.
  package func use(_ handler: @escaping @Sendable () -> Void) {
    state.withLock { $0.handler = handler }
  }

  /// Sets the moment of the next call, in nanoseconds since 1970; nil changes nothing, because a call
  /// too many does no harm. Nor does the last moment once it has passed: on etcd a value exists
  /// until etcd removes it, which an event reports.
  package func set(_ expiry: Int64?) {
    guard let expiry else { return }
    let left = max(0, expiry - PublicationRecord.now)
    state.withLock { state in
      guard left > 0 || state.expiry != expiry else { return }
      state.expiry = expiry
      let timer = state.timer ?? makeTimer()
      state.timer = timer
      timer.schedule(wallDeadline: .now() + .nanoseconds(Int(left)))
    }
  }

  private func makeTimer() -> any DispatchSourceTimer {
    let timer = DispatchSource.makeTimerSource(queue: Self.queue)
    timer.setEventHandler { [weak self] in self?.state.withLock(\.handler)() }
    timer.activate()
    return timer
  }
}
