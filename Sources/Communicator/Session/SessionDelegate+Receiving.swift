internal import Foundation
internal import WatchConnectivity

// What is not of the shape that a communicator sends is dropped: the counterpart may speak to other code
// here in other words. A request for a reply that is dropped has its sender told so at once, for the
// session sees that nobody holds the reply handler.
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
      // Gone or unreadable between the session and here: there is no blob to tell of, and no way to
      // refuse the file.
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
    BlobFile.remove(fileTransfer.file.fileURL)
    fileTransfers.end(fileTransfer, result)
    if let label = fileTransfer.file.metadata.flatMap(Labelled.init) {
      FinishedTransfer.notifyObservers(
        FinishedTransfer(.blob, label.identifier, Payload(label.content), result))
    }
  }

  private static func result(_ error: (any Error)?) -> Result<Void, any Error> {
    error.map(Result.failure) ?? .success(())
  }
}
