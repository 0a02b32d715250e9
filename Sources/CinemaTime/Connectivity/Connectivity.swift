import Foundation
import WatchConnectivity

/// What goes between the phone and the watch.
final class Connectivity: NSObject, Sendable {
  static let shared = Connectivity()

  private override init() {
    super.init()
    // Where there is no session `isSupported()` is false, and the delegate is told why: it shows it.
    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  /// Says which films are bought, and which QR codes are wanted.
  ///
  /// - Parameters:
  ///   - replyHandler: gets the answer on the main queue; nil if none is expected.
  ///   - errorHandler: gets the error on the main queue.
  func send(
    movieIds: [Int], delivery: Delivery, wantedQrCodes: [Int]? = nil,
    replyHandler: (@Sendable ([String: Any]) -> Void)? = nil,
    errorHandler: (@Sendable (any Error) -> Void)? = nil
  ) {
    guard canSendToPeer() else { return Obstacle.log() }
    var userInfo = [ConnectivityUserInfoKey.purchased.rawValue: movieIds]
    if let wantedQrCodes {
      userInfo[ConnectivityUserInfoKey.qrCodes.rawValue] = wantedQrCodes
    }
    switch delivery {
    case .failable:
      WCSession.default.sendMessage(
        userInfo, replyHandler: optionalMainQueueDispatch(handler: replyHandler),
        errorHandler: optionalMainQueueDispatch(handler: errorHandler))
    case .guaranteed:
      WCSession.default.transferUserInfo(userInfo)
    case .highPriority:
      do {
        try WCSession.default.updateApplicationContext(userInfo)
      } catch {
        optionalMainQueueDispatch(handler: errorHandler)?(error)
      }
    }
  }

  /// Sends bytes; see the form for films.
  func send(
    data: Data, replyHandler: (@Sendable (Data) -> Void)? = nil,
    errorHandler: (@Sendable (any Error) -> Void)? = nil
  ) {
    guard canSendToPeer() else { return }
    WCSession.default.sendMessageData(
      data, replyHandler: optionalMainQueueDispatch(handler: replyHandler),
      errorHandler: optionalMainQueueDispatch(handler: errorHandler))
  }

  /// Says which show is the next, for the watch's face.
  func updateComplication(_ movie: Movie?) {
    guard canSendToPeer() else { return }
    WCSession.default.transferCurrentComplicationUserInfo(
      [ConnectivityUserInfoKey.nextShow.rawValue: movie.map { [$0.id] } ?? []])
  }

  private func canSendToPeer() -> Bool {
    guard WCSession.default.activationState == .activated else { return false }
    return Cinema.isPhone
      ? WCSession.default.isWatchAppInstalled : WCSession.default.isCompanionAppInstalled
  }

  /// Nil stays nil: so the session knows that no answer is expected.
  private func optionalMainQueueDispatch<T>(
    handler: (@Sendable (T) -> Void)?
  ) -> ((T) -> Void)? {
    guard let handler else { return nil }
    return { item in
      // Only the one closure on the main queue gets it from here on.
      nonisolated(unsafe) let item = item
      DispatchQueue.main.async { handler(item) }
    }
  }
}
