import Dispatch
import Synchronization

/// Lets the thread that was told of a change go on with what follows from it, while another one takes
/// over watching: so what must be prompt needs no hop to another thread first (leader and followers;
/// Schmidt, "Leader/Followers", Pattern Languages of Programs 2000).
final class WatchRelay: Sendable {
  typealias Body = @Sendable () -> Void

  private struct State {
    /// What the watching thread is to go on with, once it has told everybody.
    var next: Body?
    /// Threads that go on with something, and those that wait to take over.
    var busy = 0
    var idle = 0
  }

  private static let maximumBusy = 4
  private static let maximumIdle = 2

  private let state = Mutex(State())
  private let takeOver = DispatchSemaphore(value: 0)

  /// - Returns: false when there is enough to go on with already.
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
  /// - Returns: false when none does.
  func wakeSuccessor() -> Bool {
    let isThere = state.withLock { state in
      guard state.idle > 0 else { return false }
      state.idle -= 1
      return true
    }
    if isThere { takeOver.signal() }
    return isThere
  }

  /// Waits until it is time to watch again.
  ///
  /// - Returns: false when enough threads wait for that already: this one may end.
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
