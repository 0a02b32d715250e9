import ConnectivityTesting
import Foundation
import Synchronization
import WatchConnectivity

/// Records what a session reports, and whether `WCSession.default` was that session then.
final class RecordingDelegate: NSObject, WCSessionDelegate, Sendable {
  private let recorded = Mutex<[String]>([])
  private let strangers = Mutex(0)

  var events: [String] { recorded.withLock { $0 } }
  /// How often `WCSession.default` was another session in a call.
  var foreignDefaults: Int { strangers.withLock { $0 } }

  private func record(_ event: String, _ session: WCSession) {
    if WCSession.default !== session { strangers.withLock { $0 += 1 } }
    recorded.withLock { $0.append(event) }
  }

  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    record(
      "activation \(activationState)"
        + (error.map { " \(($0 as? WCError)?.code.rawValue ?? 0)" } ?? ""), session)
  }

  func sessionDidBecomeInactive(_ session: WCSession) { record("inactive", session) }

  func sessionDidDeactivate(_ session: WCSession) {
    record("deactivated", session)
    session.activate()
  }

  func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    record("message \(message.keys.sorted())", session)
  }

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping ([String: Any]) -> Void
  ) {
    record("question \(message.keys.sorted())", session)
    replyHandler(["by": session.role?.rawValue ?? ""])
  }

  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    record("user info \(userInfo.keys.sorted())", session)
  }

  func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) { record("context \(applicationContext.keys.sorted())", session) }

  func session(_ session: WCSession, didReceive file: WCSessionFile) {
    let content = FileManager.default.contents(atPath: file.fileURL.path) ?? Data()
    record("file \(String(decoding: content, as: UTF8.self))", session)
  }

  func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?
  ) { record("finished \(userInfoTransfer.userInfo.keys.sorted())", session) }
}

/// The outcome of one message.
enum Outcome: Sendable, Equatable {
  case reply(String)
  case failed(WCError.Code?)
}

extension WCSession {
  /// Sends a message, and waits for one of its handlers.
  func ask(_ message: [String: Int] = [:]) async -> Outcome {
    await withCheckedContinuation { continuation in
      sendMessage(message) { reply in
        continuation.resume(returning: .reply("\(reply["by"] ?? "")"))
      } errorHandler: { error in
        continuation.resume(returning: .failed((error as? WCError)?.code))
      }
    }
  }
}
