import Foundation
import WatchConnectivity

/// Sends steps to the other side, and counts those that it gets.
public final class StepCounter: NSObject, WCSessionDelegate, @unchecked Sendable {
  // Only changed on the session's queue and read under the lock.
  private let lock = NSLock()
  private var counted = 0

  public var total: Int { lock.withLock { counted } }

  public func start() {
    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  /// Sends steps at once, and later if the other side cannot be reached.
  public func send(_ steps: Int, onReply: @escaping @Sendable (Int) -> Void) {
    WCSession.default.sendMessage(["steps": steps]) { reply in
      onReply(reply["total"] as? Int ?? 0)
    } errorHandler: { _ in
      WCSession.default.transferUserInfo(["steps": steps])
    }
  }

  private func count(_ content: [String: Any]) {
    lock.withLock { counted += content["steps"] as? Int ?? 0 }
  }

  public func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {}

  #if os(iOS)
    public func sessionDidBecomeInactive(_ session: WCSession) {}
    public func sessionDidDeactivate(_ session: WCSession) { session.activate() }
  #endif

  public func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping ([String: Any]) -> Void
  ) {
    count(message)
    replyHandler(["total": total])
  }

  public func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    count(userInfo)
  }
}
