import Foundation
import WatchConnectivity

/// The side of the watch: asks its user before it counts steps that come as a message.
///
/// `@unchecked`, because the compiler does not see that `lock` protects every property that changes.
final class Watch: NSObject, WCSessionDelegate, @unchecked Sendable {
  private let show: @Sendable (String) -> Void
  // The session's queue and the screen's thread change these under the lock.
  private let lock = NSLock()
  private var total = 0
  private var question: (steps: Int, answer: ([String: Any]) -> Void)?

  init(show: @escaping @Sendable (String) -> Void) { self.show = show }

  func start() {
    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  /// What its user does: the message is answered only now.
  func confirm() {
    lock.withLock {
      guard let asked = question else { return }
      question = nil
      total += asked.steps
      asked.answer(["total": total])
    }
  }

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping ([String: Any]) -> Void
  ) {
    let steps = message["steps"] as? Int ?? 0
    lock.withLock { question = (steps, replyHandler) }
    show("count \(steps) steps?")
  }

  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    let counted = lock.withLock {
      total += userInfo["steps"] as? Int ?? 0
      return total
    }
    show("\(counted) steps in all")
  }

  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    show(error.map { "not active: \($0)" } ?? "active")
  }
}
