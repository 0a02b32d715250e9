// Takes the delegate's place for a while, keeps what it is interested in, and passes the rest on.
import WatchConnectivity

public class SensorTap: NSObject {
  private var original: WCSessionDelegate?
  private let report: (String) -> Void

  public init(report: @escaping (String) -> Void) {
    self.report = report
  }

  public func begin() {
    let session = WCSession.default
    original = session.delegate
    session.delegate = self
  }

  public func end() {
    WCSession.default.delegate = original
    original = nil
  }

  private func isSample(_ message: [String: Any]) -> Bool {
    guard let sample = message["sample"] as? Int else { return false }
    report("sample \(sample)")
    return true
  }
}

extension SensorTap: WCSessionDelegate {
  public func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: Error?
  ) {
    original?.session(session, activationDidCompleteWith: activationState, error: error)
  }

  public func sessionDidBecomeInactive(_ session: WCSession) {
    original?.sessionDidBecomeInactive(session)
  }

  public func sessionDidDeactivate(_ session: WCSession) {
    original?.sessionDidDeactivate(session)
  }

  public func sessionWatchStateDidChange(_ session: WCSession) {
    original?.sessionWatchStateDidChange?(session)
  }

  public func sessionCompanionAppInstalledDidChange(_ session: WCSession) {
    original?.sessionCompanionAppInstalledDidChange?(session)
  }

  public func sessionReachabilityDidChange(_ session: WCSession) {
    original?.sessionReachabilityDidChange?(session)
  }

  public func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    if isSample(message) { return }
    if original?.session?(session, didReceiveMessage: message) == nil {
      report("nobody takes it")
    }
  }

  public func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping ([String: Any]) -> Void
  ) {
    if isSample(message) {
      replyHandler(["status": "ok"])
      return
    }
    original?.session?(session, didReceiveMessage: message, replyHandler: replyHandler)
  }

  public func session(_ session: WCSession, didReceiveMessageData messageData: Data) {
    original?.session?(session, didReceiveMessageData: messageData)
  }

  public func session(
    _ session: WCSession, didReceiveMessageData messageData: Data,
    replyHandler: @escaping (Data) -> Void
  ) {
    original?.session?(session, didReceiveMessageData: messageData) { reply in
      self.report("passed on")
      replyHandler(reply)
    }
  }

  public func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) {
    original?.session?(session, didReceiveApplicationContext: applicationContext)
  }

  public func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any] = [:]) {
    original?.session?(session, didReceiveUserInfo: userInfo)
  }

  public func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer, error: Error?
  ) {
    original?.session?(session, didFinish: userInfoTransfer, error: error)
  }

  public func session(_ session: WCSession, didReceive file: WCSessionFile) {
    original?.session?(session, didReceive: file)
  }

  public func session(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: Error?
  ) {
    original?.session?(session, didFinish: fileTransfer, error: error)
  }
}
