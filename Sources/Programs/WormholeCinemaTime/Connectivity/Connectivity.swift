import Foundation
import Synchronization
import WatchConnectivity

/// The connection between the phone and the watch.
final class Connectivity: NSObject, Sendable {
  static let shared = Connectivity()

  /// The moment of a switch to another watch at which the session is activated again.
  enum Activation: String, CaseIterable, Sendable {
    /// As soon as the session is inactive. It counts once the session is deactivated.
    case inactive
    /// When everything from the watch before is delivered, as Apple's documentation says.
    case deactivated
  }

  /// When a switch to another watch activates the session again.
  var activatesAgain: Activation {
    get { activation.withLock { $0 } }
    set { activation.withLock { $0 = newValue } }
  }

  private let activation = Mutex(Activation.deactivated)

  private override init() {
    super.init()
    // Without a session `isSupported()` is false, and the delegate receives and shows the reason.
    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  /// Sends the numbers of the bought films and of the wanted QR codes.
  ///
  /// - Parameters:
  ///   - replyHandler: Receives the answer on the main queue; nil if none is expected.
  ///   - errorHandler: Receives the error on the main queue.
  func send(
    movieIds: [Int], delivery: Delivery, wantedQrCodes: [Int]? = nil,
    replyHandler: (@Sendable ([String: Any]) -> Void)? = nil,
    errorHandler: (@Sendable (any Error) -> Void)? = nil
  ) {
    guard canSendToPeer() else { return Obstacle.log() }
    var userInfo = [UserInfoKey.purchased: movieIds]
    userInfo[UserInfoKey.qrCodes] = wantedQrCodes
    switch delivery {
    case .failable:
      WCSession.default.sendMessage(
        userInfo, replyHandler: onMain(replyHandler), errorHandler: onMain(errorHandler))
    case .guaranteed:
      WCSession.default.transferUserInfo(userInfo)
    case .highPriority:
      do {
        try WCSession.default.updateApplicationContext(userInfo)
      } catch {
        onMain(errorHandler)?(error)
      }
    }
  }

  /// Sends data at once or not at all; the parameters are those of the form for numbers.
  func send(
    data: Data, replyHandler: (@Sendable (Data) -> Void)? = nil,
    errorHandler: (@Sendable (any Error) -> Void)? = nil
  ) {
    guard canSendToPeer() else { return Obstacle.log() }
    WCSession.default.sendMessageData(
      data, replyHandler: onMain(replyHandler), errorHandler: onMain(errorHandler))
  }

  /// Sends the next show to the watch's face.
  func updateComplication(_ movie: Movie?) {
    guard canSendToPeer() else { return }
    WCSession.default.transferCurrentComplicationUserInfo(
      [UserInfoKey.nextShow: movie.map { [$0.id] } ?? []])
  }

  private func canSendToPeer() -> Bool {
    guard WCSession.default.activationState == .activated else { return false }
    return Cinema.isPhone
      ? WCSession.default.isWatchAppInstalled : WCSession.default.isCompanionAppInstalled
  }

  /// Nil stays nil, so that the session knows that no answer is expected.
  private func onMain<T>(_ handler: (@Sendable (T) -> Void)?) -> ((T) -> Void)? {
    guard let handler else { return nil }
    return { item in
      // From here on only the one closure on the main queue uses it.
      nonisolated(unsafe) let item = item
      DispatchQueue.main.async { handler(item) }
    }
  }
}

/// The way in which content is sent to the other side.
enum Delivery: String, CaseIterable, Sendable {
  /// At once or not at all: the other side must run, or be started for it.
  case failable
  /// Eventually, complete and in order, even if the other side does not run now.
  case guaranteed
  /// Eventually, and only the latest.
  case highPriority
}

/// The keys of the content.
enum UserInfoKey {
  static let purchased = "purchased"
  static let qrCodes = "qrCodes"
  static let verified = "verified"
  static let nextShow = "nextShow"
}
