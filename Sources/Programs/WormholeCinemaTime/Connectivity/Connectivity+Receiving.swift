import Foundation
import WatchConnectivity
import WormholeSystem

extension Connectivity: WCSessionDelegate {
  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    if let error { return Obstacle.activationFailed(error) }
    Cinema.log("session is active")
    DispatchQueue.main.async { Installation.sessionDidActivate() }
    Cinema.log(obstacle: nil)
    Obstacle.log()
  }

  func sessionDidBecomeInactive(_ session: WCSession) {
    Cinema.log("session is inactive", .notice("The phone changes to another watch."))
    if activatesAgain == .inactive { WCSession.default.activate() }
  }

  // The user has switched to another watch.
  func sessionDidDeactivate(_ session: WCSession) {
    Cinema.log("session is deactivated")
    if activatesAgain == .deactivated { WCSession.default.activate() }
  }

  func sessionWatchStateDidChange(_ session: WCSession) { sessionReachabilityDidChange(session) }

  func sessionCompanionAppInstalledDidChange(_ session: WCSession) {
    sessionReachabilityDidChange(session)
  }

  func sessionReachabilityDidChange(_ session: WCSession) {
    Obstacle.log()
    DispatchQueue.main.async { TicketOffice.shared.didChange() }
  }

  func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    update(from: message, by: "message")
  }

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping ([String: Any]) -> Void
  ) {
    update(from: message, by: "question")
    replyHandler([UserInfoKey.verified: true])
  }

  func session(_ session: WCSession, didReceiveMessageData messageData: Data) {
    let text = String(decoding: messageData, as: UTF8.self)
    Cinema.log("data says \(text)", .notice("The \(Cinema.other) says: \(text)"))
  }

  // The bytes return as they came.
  func session(
    _ session: WCSession, didReceiveMessageData messageData: Data,
    replyHandler: @escaping (Data) -> Void
  ) {
    let text = String(decoding: messageData, as: UTF8.self)
    Cinema.log("data asks \(text)", .notice("The \(Cinema.other) asks: \(text)"))
    replyHandler(messageData)
  }

  func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) {
    update(from: applicationContext, by: "context")
  }

  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    guard let show = userInfo[UserInfoKey.nextShow] as? [Int] else {
      return update(from: userInfo, by: "user info")
    }
    Complication.save(show.first)
    DispatchQueue.main.async { TicketOffice.shared.didChange() }
  }

  func session(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: (any Error)?
  ) {
    if let reason = error?.localizedDescription {
      Cinema.log(
        "not transferred: \(reason)", .failure("A QR code did not reach the watch: \(reason)"))
    }
    TicketCodes.removeTemporary(fileTransfer.file.fileURL)
  }

  // On the watch: when this returns the file is gone, unless it was moved.
  func session(_ session: WCSession, didReceive file: WCSessionFile) {
    guard let id = file.metadata?[UserInfoKey.qrCodes] as? Int else { return }
    do {
      try TicketCodes.take(file.fileURL, for: id)
      Cinema.log("received the QR code of \(id)")
    } catch {
      let reason = error.localizedDescription
      Cinema.log(
        "the QR code of \(id) was not saved: \(reason)",
        .failure("A QR code was not saved: \(reason)"))
    }
    DispatchQueue.main.async {
      // The ticket was given back meanwhile, so its code is no longer needed.
      TicketCodes.removeFiles(except: TicketOffice.shared.purchased)
      TicketOffice.shared.didChange()
    }
  }

  // The QR codes first, because they may be wanted even if no ticket was bought.
  private func update(from dictionary: [String: Any], by way: String) {
    sendQrCodes(dictionary)
    guard let ids = dictionary[UserInfoKey.purchased] as? [Int] else { return }
    Cinema.log("\(way) says \(ids)")
    // Only a notice: the shared value says which tickets are bought.
    DispatchQueue.main.async { TicketOffice.shared.refresh() }
  }

  private func sendQrCodes(_ dictionary: [String: Any]) {
    guard Cinema.isPhone, let ids = dictionary[UserInfoKey.qrCodes] as? [Int] else { return }
    for movie in ids.compactMap({ Movie.of($0) }) {
      do {
        let url = try TicketCodes.writeTemporary(movie)
        WCSession.default.transferFile(url, metadata: [UserInfoKey.qrCodes: movie.id])
        Cinema.log("sends the QR code of \(movie.id)")
        EndAfterTransfer.endHereIfWanted()
      } catch {
        let reason = error.localizedDescription
        Cinema.log(
          "no QR code for \(movie.id): \(reason)",
          .failure("No QR code for \(movie.quoted): \(reason)"))
      }
    }
  }
}

/// A phone for the story and the tests that is killed after it has handed a file to the session.
enum EndAfterTransfer {
  static let variable = "CINEMATIME_KILLED_AFTER_TRANSFER"

  static func endHereIfWanted() {
    guard Program.environment(variable) != nil else { return }
    do throws(Errno) {
      try Program.send(.kill, to: Program.processID)
    } catch {
      preconditionFailure("a process may end itself: \(error)")
    }
  }
}
