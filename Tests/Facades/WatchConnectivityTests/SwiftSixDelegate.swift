import Foundation
import WatchConnectivity

/// A delegate as in Swift 6 code for Apple's framework: a class of the main actor whose callbacks
/// are not isolated. The test is that this file compiles.
@MainActor
final class SwiftSixDelegate: NSObject, WCSessionDelegate {
  var isReachable = false
  var texts: [String] = []

  func start() {
    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  func send(_ text: String) {
    WCSession.default.sendMessage(["text": text]) { [weak self] reply in
      let answer = reply["text"] as? String ?? ""
      Task { @MainActor in self?.texts.append(answer) }
    } errorHandler: { error in
      print(error.localizedDescription)
    }
  }

  nonisolated func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    let isReachable = session.isReachable
    Task { @MainActor in self.isReachable = isReachable }
  }

  nonisolated func sessionReachabilityDidChange(_ session: WCSession) {
    Task { @MainActor in self.isReachable = session.isReachable }
  }

  // Without `@Sendable`, the usual form.
  nonisolated func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping ([String: Any]) -> Void
  ) {
    replyHandler(message)
  }

  // With it, the form for answering later.
  nonisolated func session(
    _ session: WCSession, didReceiveMessageData messageData: Data,
    replyHandler: @escaping @Sendable (Data) -> Void
  ) {
    Task { @MainActor in
      texts.append(String(decoding: messageData, as: UTF8.self))
      replyHandler(messageData)
    }
  }
}
