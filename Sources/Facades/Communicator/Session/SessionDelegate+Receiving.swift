internal import Foundation
internal import WatchConnectivity

// Messages whose shape differs from a communicator's are dropped, because the counterpart may use
// another protocol with other code here. The sender of a dropped request gets an error at once,
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
      // The file is gone or unreadable between the session and here: there is no blob to report,
      // and no way to refuse the file.
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
        FinishedTransfer(.guaranteedMessage, message.identifier, message.payload, result))
    }
    if let info = ComplicationInfo(wire: userInfo) {
      FinishedTransfer.notifyObservers(
        FinishedTransfer(.complicationInfo, "", info.payload, result))
    }
  }

  func session(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: (any Error)?
  ) {
    let result = Self.result(error)
    TemporaryContent.blob.remove(fileTransfer.file.fileURL)
    fileTransfers.end(fileTransfer, result)
    if let label = fileTransfer.file.metadata.flatMap(Labelled.init) {
      FinishedTransfer.notifyObservers(
        FinishedTransfer(.blob, label.identifier, SharedContent(label.content), result))
    }
  }

  private static func result(_ error: (any Error)?) -> Result<Void, any Error> {
    error.map(Result.failure) ?? .success(())
  }
}
