import AppGroup
import Dispatch
import Synchronization

/// What a thread that is blocked in a call waits for.
final class PeerWaiter: Sendable {
  private let result = Mutex<CallTable.Result?>(nil)
  private let semaphore = DispatchSemaphore(value: 0)

  func end(_ outcome: CallTable.Result) {
    result.withLock { $0 = outcome }
    semaphore.signal()
  }

  var hasEnded: Bool { result.withLock { $0 != nil } }

  /// - Returns: nil when the deadline has passed.
  func wait(until deadline: ContinuousClock.Instant) -> CallTable.Result? {
    let wait = max(ContinuousClock.now.duration(to: deadline), .zero)
    guard semaphore.wait(timeout: .now() + wait.dispatchInterval) == .success else { return nil }
    return ended()
  }

  /// For who knows that it has ended, or is just about to.
  func wait() -> CallTable.Result {
    semaphore.wait()
    return ended()
  }

  private func ended() -> CallTable.Result {
    guard let outcome = result.withLock({ $0 }) else {
      preconditionFailure("a caller is woken when its outcome is there")
    }
    return outcome
  }
}
