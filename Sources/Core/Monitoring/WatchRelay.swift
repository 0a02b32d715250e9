import Dispatch
import Synchronization

/// A relay that lets the thread with the news of a change act on it, while another thread takes
/// over the watching. So an urgent action needs no hop to another thread (leader and followers;
/// Schmidt, "Leader/Followers", Pattern Languages of Programs 2000).
final class WatchRelay: Sendable {
  typealias Body = @Sendable () -> Void

  private struct State {
    /// The next closure for the watching thread, after it has signalled all watches.
    var next: Body?
    /// The number of threads that run closures or wait to take over.
    var busy = 0
    var idle = 0
  }

  private static let maximumBusy = 4
  private static let maximumIdle = 2

  private let state = Mutex(State())
  private let takeOver = DispatchSemaphore(value: 0)

  /// - Returns: False if enough closures are running.
  func add(_ body: @escaping Body) -> Bool {
    state.withLock { state in
      guard state.next == nil, state.busy < Self.maximumBusy else { return false }
      state.next = body
      return true
    }
  }

  func take() -> Body? {
    state.withLock { state in
      defer { state.next = nil }
      if state.next != nil { state.busy += 1 }
      return state.next
    }
  }

  /// Wakes a thread that waits to take over.
  ///
  /// - Returns: False if there is none.
  func wakeSuccessor() -> Bool {
    let isThere = state.withLock { state in
      guard state.idle > 0 else { return false }
      state.idle -= 1
      return true
    }
    if isThere { takeOver.signal() }
    return isThere
  }

  /// Waits until this thread should watch again.
  ///
  /// - Returns: False if enough threads wait for that already, so that this one may end.
  func waitToWatch() -> Bool {
    let mayWait = state.withLock { state in
      state.busy -= 1
      guard state.idle < Self.maximumIdle else { return false }
      state.idle += 1
      return true
    }
    if mayWait { takeOver.wait() }
    return mayWait
  }

  func ended() { state.withLock { $0.busy -= 1 } }
}
