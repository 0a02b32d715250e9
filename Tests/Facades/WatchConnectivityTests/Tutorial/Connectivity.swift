import Combine
import Foundation
import WatchConnectivity

/// The class that apps put between themselves and WatchConnectivity, modelled on the
/// tutorials: a cinema whose tickets are bought on either side, and whose QR codes only the phone
/// can make.
///
/// It is written for Apple's frameworks and compiles there unchanged. `#if os(iOS)` is false here, so
/// its code is left out: `CinemaPhone.swift` has the phone's part in the form that Linux needs.
final class Connectivity: NSObject, ObservableObject {
  static let shared = Connectivity()

  @Published var purchasedIDs: [Int] = []

  /// The directory of received QR codes.
  var codesDirectory = FileManager.default.temporaryDirectory

  override private init() {
    super.init()

    #if !os(watchOS)
      guard WCSession.isSupported() else { return }
    #endif

    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  func send(
    movieIDs: [Int],
    delivery: Delivery,
    wantedCodes: [Int]? = nil,
    replyHandler: (([String: Any]) -> Void)? = nil,
    errorHandler: ((Error) -> Void)? = nil
  ) {
    guard canSendToPeer() else { return }

    var userInfo: [String: [Int]] = [ConnectivityKey.purchased.rawValue: movieIDs]
    if let wantedCodes = wantedCodes {
      userInfo[ConnectivityKey.codes.rawValue] = wantedCodes
    }

    switch delivery {
    case .failable:
      WCSession.default.sendMessage(
        userInfo,
        replyHandler: onMainQueue(replyHandler),
        errorHandler: onMainQueue(errorHandler)
      )
    case .guaranteed:
      WCSession.default.transferUserInfo(userInfo)
    case .highPriority:
      do {
        try WCSession.default.updateApplicationContext(userInfo)
      } catch {
        errorHandler?(error)
      }
    }
  }

  func send(
    data: Data,
    replyHandler: ((Data) -> Void)? = nil,
    errorHandler: ((Error) -> Void)? = nil
  ) {
    guard canSendToPeer() else { return }

    WCSession.default.sendMessageData(
      data,
      replyHandler: onMainQueue(replyHandler),
      errorHandler: onMainQueue(errorHandler)
    )
  }

  private func canSendToPeer() -> Bool {
    guard WCSession.default.activationState == .activated else { return false }

    #if os(watchOS)
      guard WCSession.default.isCompanionAppInstalled else { return false }
    #elseif os(iOS)
      guard WCSession.default.isWatchAppInstalled else { return false }
    #endif

    return true
  }

  /// A missing handler stays missing, because that means that no reply is expected.
  private func onMainQueue<Value>(_ handler: ((Value) -> Void)?) -> ((Value) -> Void)? {
    guard let handler = handler else { return nil }
    return { value in
      DispatchQueue.main.async { handler(value) }
    }
  }

  private func update(from dictionary: [String: Any]) {
    #if os(iOS)
      sendCodes(dictionary)
    #endif

    guard let ids = dictionary[ConnectivityKey.purchased.rawValue] as? [Int] else { return }
    purchasedIDs = ids
  }

  #if os(iOS)
    private func sendCodes(_ dictionary: [String: Any]) {
      guard let ids = dictionary[ConnectivityKey.codes.rawValue] as? [Int], !ids.isEmpty else {
        return
      }
      for id in ids {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        guard (try? Data("code of \(id)".utf8).write(to: url)) != nil else { continue }
        WCSession.default.transferFile(url, metadata: [ConnectivityKey.codes.rawValue: id])
      }
    }
  #endif
}

/// The urgency of a change, and the failures that it survives.
enum Delivery {
  case failable
  case guaranteed
  case highPriority
}

/// The keys that both sides use.
enum ConnectivityKey: String {
  case purchased
  case codes
  case verified
}

// MARK: - WCSessionDelegate
extension Connectivity: WCSessionDelegate {
  func session(
    _ session: WCSession,
    activationDidCompleteWith activationState: WCSessionActivationState,
    error: Error?
  ) {
    if let error = error as? WCError, error.code == .sessionNotSupported {
      print(error.localizedDescription)
    }
  }

  #if os(iOS)
    func sessionDidBecomeInactive(_ session: WCSession) {
    }

    func sessionDidDeactivate(_ session: WCSession) {
      // The user has switched to another watch: activate the session for that one.
      WCSession.default.activate()
    }
  #endif

  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any] = [:]) {
    update(from: userInfo)
  }

  func session(
    _ session: WCSession,
    didReceiveApplicationContext applicationContext: [String: Any]
  ) {
    update(from: applicationContext)
  }

  func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    update(from: message)
  }

  func session(
    _ session: WCSession,
    didReceiveMessage message: [String: Any],
    replyHandler: @escaping ([String: Any]) -> Void
  ) {
    update(from: message)
    replyHandler([ConnectivityKey.verified.rawValue: true])
  }

  func session(_ session: WCSession, didReceiveMessageData messageData: Data) {
  }

  func session(
    _ session: WCSession,
    didReceiveMessageData messageData: Data,
    replyHandler: @escaping (Data) -> Void
  ) {
    replyHandler(Data(messageData.reversed()))
  }

  #if !os(iOS)
    func session(_ session: WCSession, didReceive file: WCSessionFile) {
      guard let id = file.metadata?[ConnectivityKey.codes.rawValue] as? Int else { return }
      let destination = codesDirectory.appendingPathComponent("\(id).png")
      // An earlier code of the same ticket is replaced.
      try? FileManager.default.removeItem(at: destination)
      try? FileManager.default.moveItem(at: file.fileURL, to: destination)
    }
  #endif
}
