import Foundation
import WatchConnectivity

/// The phone's part of the cinema, in the form that compiles for both platforms: guards with `#if
/// os(iOS)` or `#if os(watchOS)` also have `|| os(Linux)`, where the role is known only at run
/// time.
final class CinemaPhone: NSObject, WCSessionDelegate {
  private(set) var purchasedIDs: [Int] = []
  private(set) var ends: [String] = []

  func start() {
    guard WCSession.isSupported() else { return }
    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  var canSend: Bool {
    guard WCSession.default.activationState == .activated else { return false }
    #if os(iOS) || os(Linux)
      if !WCSession.default.isWatchAppInstalled || !WCSession.default.isPaired { return false }
      if WCSession.default.watchDirectoryURL == nil { return false }
      if WCSession.default.isComplicationEnabled,
        WCSession.default.remainingComplicationUserInfoTransfers > 0
      {
        WCSession.default.transferCurrentComplicationUserInfo(["tickets": purchasedIDs.count])
      }
    #endif
    #if os(watchOS)
      if !WCSession.default.isCompanionAppInstalled { return false }
    #endif
    return WCSession.default.isReachable
  }

  /// The usual forms of sending and catching.
  func ask(_ question: [String: Any], _ done: @escaping (String) -> Void) {
    WCSession.default.sendMessage(question) { reply in
      done("reply \(reply.count)")
    } errorHandler: { error in
      switch error {
      case WCError.notReachable, WCError.deliveryFailed: done("not there")
      case let error as WCError where error.code == .messageReplyTimedOut: done("late")
      default: done("\((error as NSError).code) \(error.localizedDescription)")
      }
    }
    WCSession.default.sendMessage(question, replyHandler: nil)
    WCSession.default.sendMessage(question, replyHandler: { _ in })
    WCSession.default.sendMessage(question, replyHandler: nil) { error in
      print("Error sending message: \(error.localizedDescription)")
    }
    WCSession.default.sendMessageData(Data(), replyHandler: nil, errorHandler: nil)
    do {
      try WCSession.default.updateApplicationContext(question)
    } catch WCError.payloadTooLarge {
      done("too large")
    } catch let error as NSError where error.domain == WCErrorDomain {
      done("\(WCError.Code(rawValue: error.code) == .sessionNotActivated)")
    } catch {
      done("\(error)")
    }
  }

  // MARK: WCSessionDelegate

  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: Error?
  ) {
    guard activationState == .activated, error == nil else { return }
    for transfer in session.outstandingFileTransfers where !transfer.isTransferring {
      transfer.cancel()
    }
    for transfer in session.outstandingUserInfoTransfers where transfer.isCurrentComplicationInfo {
      transfer.cancel()
    }
  }

  #if os(iOS) || os(Linux)
    func sessionDidBecomeInactive(_ session: WCSession) {}

    func sessionDidDeactivate(_ session: WCSession) {
      session.activate()
    }

    func sessionWatchStateDidChange(_ session: WCSession) {}
  #endif

  func sessionReachabilityDidChange(_ session: WCSession) {}

  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    update(from: userInfo)
  }

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping ([String: Any]) -> Void
  ) {
    update(from: message)
    replyHandler([ConnectivityKey.verified.rawValue: true])
  }

  func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) {
    update(from: applicationContext)
  }

  func session(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: Error?
  ) {
    ends.append("\(fileTransfer.progress.fractionCompleted) \(error?.localizedDescription ?? "")")
    try? FileManager.default.removeItem(at: fileTransfer.file.fileURL)
  }

  private func update(from dictionary: [String: Any]) {
    sendCodes(dictionary)
    guard let ids = dictionary[ConnectivityKey.purchased.rawValue] as? [Int] else { return }
    purchasedIDs = ids
  }

  /// Codes that cannot be made are skipped: the watch asks again with its next change.
  private func sendCodes(_ dictionary: [String: Any]) {
    guard let ids = dictionary[ConnectivityKey.codes.rawValue] as? [Int] else { return }
    for id in ids {
      let url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
      guard (try? Data("code of \(id)".utf8).write(to: url)) != nil else { continue }
      WCSession.default.transferFile(url, metadata: [ConnectivityKey.codes.rawValue: id])
    }
  }
}
