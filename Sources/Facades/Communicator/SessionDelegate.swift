internal import Dispatch
internal import Foundation
internal import Synchronization
internal import WatchConnectivity

/// Turns the session's callbacks into values for observers; called on the session's queue, one call
/// at a time.
final class SessionDelegate: NSObject, WCSessionDelegate, Sendable {
  let userInfoTransfers = Completions<WCSessionUserInfoTransfer>()
  let fileTransfers = Completions<WCSessionFileTransfer>()
  private let retry = Mutex(ActivationRetry())

  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    reportState(of: session)
    if session.role == .phone { WatchState.notifyObservers(WatchState(session: session)) }
    if session.role == .watch { PhoneState.notifyObservers(PhoneState(session: session)) }
    guard activationState == .notActivated else {
      retry.withLock { $0.succeeded() }
      return
    }
    guard let pause = retry.withLock({ $0.pause(after: error) }) else { return }
    DispatchQueue.communicator.asyncAfter(deadline: .now() + pause / .seconds(1)) {
      session.activate()
    }
  }

  func sessionDidBecomeInactive(_ session: WCSession) { reportState(of: session) }

  func sessionDidDeactivate(_ session: WCSession) {
    reportState(of: session)
    // The next watch is waiting.
    session.activate()
  }

  func sessionReachabilityDidChange(_ session: WCSession) {
    Reachability.notifyObservers(Reachability(session: session))
  }

  func sessionWatchStateDidChange(_ session: WCSession) {
    WatchState.notifyObservers(WatchState(session: session))
    Reachability.notifyObservers(Reachability(session: session))
  }

  func sessionCompanionAppInstalledDidChange(_ session: WCSession) {
    PhoneState.notifyObservers(PhoneState(session: session))
    Reachability.notifyObservers(Reachability(session: session))
  }

  private func reportState(of session: WCSession) {
    Communicator.State.notifyObservers(Communicator.State(session.activationState))
    Reachability.notifyObservers(Reachability(session: session))
  }
}

// Messages whose shape differs from a communicator's are dropped, because other code in the
// counterpart may use another protocol here. The sender of a dropped request gets an error at once,
// because the session sees that the reply handler was released.
extension SessionDelegate {
  func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    ImmediateMessage(wire: message).map(ImmediateMessage.notifyObservers)
  }

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void
  ) {
    InteractiveImmediateMessage(wire: message) { reply in
      replyHandler(reply.wire.content)
    }.map(InteractiveImmediateMessage.notifyObservers)
  }

  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    GuaranteedMessage(wire: userInfo).map(GuaranteedMessage.notifyObservers)
    ComplicationInfo(wire: userInfo).map(ComplicationInfo.notifyObservers)
  }

  func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) {
    Context.notifyObservers(Context(content: applicationContext))
  }

  func session(_ session: WCSession, didReceive file: WCSessionFile) {
    guard let metadata = file.metadata, Labelled(wire: metadata) != nil else { return }
    do {
      let content = try Data(contentsOf: file.fileURL)
      Blob(content: content, wireMetadata: metadata).map(Blob.notifyObservers)
    } catch {
      // Nothing can refuse the file here: it vanished or became unreadable before this call.
      session.report(error)
    }
  }

  func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?
  ) {
    let result = Self.result(error)
    userInfoTransfers.end(userInfoTransfer, result)
    let userInfo = userInfoTransfer.userInfo
    if let message = GuaranteedMessage(wire: userInfo) {
      FinishedTransfer.notifyObservers(
        FinishedTransfer(
          kind: .guaranteedMessage, identifier: message.identifier, result: result,
          payload: message.payload))
    }
    if let info = ComplicationInfo(wire: userInfo) {
      FinishedTransfer.notifyObservers(
        FinishedTransfer(
          kind: .complicationInfo, identifier: "", result: result, payload: info.payload))
    }
  }

  func session(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: (any Error)?
  ) {
    let result = Self.result(error)
    fileTransfers.end(fileTransfer, result)
    if let label = fileTransfer.file.metadata.flatMap(Labelled.init) {
      FinishedTransfer.notifyObservers(
        FinishedTransfer(
          kind: .blob, identifier: label.identifier, result: result,
          payload: SharedContent(label.content)))
    }
  }

  private static func result(_ error: (any Error)?) -> Result<Void, any Error> {
    error.map(Result.failure) ?? .success(())
  }
}

/// The schedule for repeated activation of a session: a pause that doubles, from 0.1 s up to a
/// minute; no repetition if it cannot help.
struct ActivationRetry {
  private static let first = Duration.milliseconds(100)
  private static let longest = Duration.seconds(60)

  private var next = Self.first

  /// Returns the pause before the next attempt, or nil for no further attempt.
  mutating func pause(after error: (any Error)?) -> Duration? {
    let permanent: [WCError.Code] = [.sessionNotSupported, .sessionMissingDelegate]
    if let error = error as? WCError, permanent.contains(error.code) { return nil }
    defer { next = min(next * 2, Self.longest) }
    return next
  }

  mutating func succeeded() { next = Self.first }
}
