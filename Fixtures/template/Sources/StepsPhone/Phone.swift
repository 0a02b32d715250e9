import Foundation
import WatchConnectivity

/// The side of the phone, as an app for iOS has it: sends steps at once, and later if the watch is away.
final class Phone: NSObject, WCSessionDelegate, Sendable {
  private let show: @Sendable (String) -> Void

  init(show: @escaping @Sendable (String) -> Void) { self.show = show }

  func start() {
    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  func send(_ steps: Int) {
    WCSession.default.sendMessage(["steps": steps]) { [show] reply in
      show("the watch has counted \(reply["total"] ?? 0)")
    } errorHandler: { [show] error in
      show("later, because \(error.localizedDescription)")
      WCSession.default.transferUserInfo(["steps": steps])
    }
  }

  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    show(error.map { "not active: \($0)" } ?? "active")
    sessionReachabilityDidChange(session)
  }

  func sessionReachabilityDidChange(_ session: WCSession) {
    show(session.isReachable ? "watch in reach" : "watch away")
  }

  #if os(iOS)
    func sessionDidBecomeInactive(_ session: WCSession) {}
    func sessionDidDeactivate(_ session: WCSession) { session.activate() }
  #endif
}
