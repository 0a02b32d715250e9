import Foundation
import Synchronization
import WatchConnectivity
import WormholeTestSupport

/// What a delegate asks when it learns of the activation: "stopped:PID", whether the counterpart
/// with that process is reachable, while it is stopped; before and after that, the process runs.
/// "continued:PID" is for a process that is stopped already.
struct SessionDoubt {
  private let processID: pid_t
  private let mustStop: Bool

  init?(_ manner: String) {
    let parts = manner.split(separator: ":")
    guard parts.count == 2, let processID = pid_t(parts[1]) else { return nil }
    self.processID = processID
    mustStop = parts[0] == "stopped"
  }

  /// Returns the answer that the session gave while the process was stopped.
  func isReachable(_ session: WCSession) -> Bool {
    if mustStop { kill(processID, SIGSTOP) }
    defer { kill(processID, SIGCONT) }
    let deadline = Date().addingTimeInterval(10)
    // The signal takes a moment, and another one until the process counts as stopped.
    while session.isReachable {
      guard Date() < deadline else { return true }
      Thread.sleep(forTimeInterval: 0.001)
    }
    return false
  }
}

/// The way in which a delegate answers messages.
enum SessionManner: String {
  /// With the received content, and its name.
  case full
  /// Releases the reply handler.
  case release
  /// Keeps the reply handler.
  case hold
  /// With content that no property list can hold.
  case bad
  /// Twice.
  case twice
}

/// A delegate with only the required methods.
final class BareSessionDelegate: NSObject, WCSessionDelegate, Sendable {
  private let events: SessionEvents
  init(_ events: SessionEvents) { self.events = events }

  func session(
    _ session: WCSession, activationDidCompleteWith state: WCSessionActivationState,
    error: (any Error)?
  ) { events.add("activated" + (error.map { " \(SessionWords.code($0))" } ?? "")) }
}

final class FullSessionDelegate: NSObject, WCSessionDelegate, Sendable {
  private let events: SessionEvents
  private let manner: SessionManner
  private let doubt: SessionDoubt?
  private let kept = Mutex<[@Sendable ([String: Any]) -> Void]>([])

  init(_ events: SessionEvents, _ manner: String) {
    self.events = events
    self.manner = SessionManner(rawValue: manner) ?? .full
    doubt = SessionDoubt(manner)
  }

  func session(
    _ session: WCSession, activationDidCompleteWith state: WCSessionActivationState,
    error: (any Error)?
  ) {
    if let doubt { events.add("answered \(doubt.isReachable(session))") }
    events.add("activated" + (error.map { " \(SessionWords.code($0))" } ?? ""))
  }

  func sessionDidBecomeInactive(_ session: WCSession) {
    events.add("inactive")
    // One of the well-known tutorials does this.
    if manner == .hold { session.activate() }
  }

  func sessionDidDeactivate(_ session: WCSession) { events.add("deactivated") }

  func sessionWatchStateDidChange(_ session: WCSession) { events.add("watchState") }

  func sessionCompanionAppInstalledDidChange(_ session: WCSession) { events.add("companion") }

  func sessionReachabilityDidChange(_ session: WCSession) {
    events.add("reachability \(session.isReachable)")
  }

  func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    events.add("message \(message["quit"] != nil ? "quit" : SessionWords.text(message))")
  }

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void
  ) {
    events.add("asked \(SessionWords.text(message))")
    switch manner {
    case .full: replyHandler(message.merging(["by": "\(getpid())"]) { $1 })
    case .release: break
    case .hold: kept.withLock { $0.append(replyHandler) }
    case .bad: replyHandler(["a": NSObject()])
    case .twice:
      replyHandler(["reply": 1])
      replyHandler(["reply": 2])
    }
  }

  func session(_ session: WCSession, didReceiveMessageData messageData: Data) {
    events.add("data \(String(decoding: messageData, as: UTF8.self))")
  }

  func session(
    _ session: WCSession, didReceiveMessageData messageData: Data,
    replyHandler: @escaping @Sendable (Data) -> Void
  ) {
    events.add("askedData \(String(decoding: messageData, as: UTF8.self))")
    if manner == .full { replyHandler(Data(messageData.reversed())) }
  }

  func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) { events.add("context \(SessionWords.text(applicationContext))") }

  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    events.add("info \(SessionWords.text(userInfo))")
  }

  func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?
  ) {
    events.add(
      "finished \(SessionWords.text(userInfoTransfer.userInfo)) \(error.map(SessionWords.code) ?? "-")"
    )
  }

  func session(_ session: WCSession, didReceive file: WCSessionFile) {
    let name = file.fileURL.lastPathComponent
    do {
      let content = try String(contentsOf: file.fileURL, encoding: .utf8)
      // Tests check there whether it was moved, and that a file that was not moved is gone.
      if let place = file.metadata?["moveTo"] as? String {
        try FileManager.default.moveItem(at: file.fileURL, to: URL(filePath: place))
      }
      events.add(
        "file \(name) \(content) \(SessionWords.text(file.metadata ?? [:])) at \(file.fileURL.path)"
      )
    } catch {
      events.add("file \(name) error \(error)")
    }
  }

  func session(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: (any Error)?
  ) {
    let isWhole = fileTransfer.progress.fractionCompleted == 1 || error != nil
    events.add(
      "sent \(fileTransfer.file.fileURL.lastPathComponent) \(error.map(SessionWords.code) ?? "-")"
        + (isWhole ? "" : " not whole"))
  }
}

/// What answers and events say of errors and dictionaries.
enum SessionWords {
  static func code(_ error: any Error) -> String { "\((error as NSError).code)" }

  /// Returns "a=1 b=x" for numbers and strings, by key; for numbers of all kinds, the failing casts.
  static func text(_ objects: [String: Any]) -> String {
    if objects["counts"] != nil { return "numbers \(ReceivedNumbers.findings(in: objects))." }
    return objects.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
  }

  static func pairs(_ words: [String]) -> [String: Any] {
    var objects: [String: Any] = [:]
    for word in words {
      let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
      let value = parts.count > 1 ? parts[1] : ""
      objects[parts[0]] = Int(value) ?? value
    }
    return objects
  }
}
