import Foundation
import Synchronization
import WatchConnectivity
import Wormhole
import WormholePeers
import WormholeSystem
import WormholeTerminals

enum UserInfoKey {
  static let purchased = "purchased"
  static let qrCodes = "qrCodes"
  static let verified = "verified"
  static let nextShow = "nextShow"
}

/// The connection between the phone and the watch: sends changes, and receives them.
final class Connectivity: NSObject, Sendable {
  static let shared = Connectivity()
  /// Set (story, tests) for a phone that is killed after it has handed a file to the session.
  static let killingVariable = "CINEMATIME_KILLED_AFTER_TRANSFER"
  /// Whether the phone did not answer the watch's last question.
  private let isUnanswered = Atomic(false)

  private override init() {
    super.init()
    // Without a session `isSupported()` is false, and the delegate receives and shows the reason.
    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  // MARK: Sending

  /// Sends the numbers of the bought films, complete and in order, even if no watch runs now.
  func transfer(_ movies: [Movie]) {
    guard canSendToPeer() else { return Obstacle.log() }
    WCSession.default.transferUserInfo([UserInfoKey.purchased: movies.map(\.id)])
  }

  /// Shows the phone the tickets and asks for missing QR codes, at once or not at all: it must run,
  /// or be started. Without an answer asks again: a few times, once reachable, with the next
  /// change.
  @MainActor
  func askForQrCodes(tries: Int = 3) {
    guard canSendToPeer() else { return Obstacle.log() }
    let movies = TicketOffice.shared.purchased
    let missing = TicketCodes.missing(movies)
    WCSession.default.sendMessage(
      [UserInfoKey.purchased: movies.map(\.id), UserInfoKey.qrCodes: missing],
      replyHandler: { reply in
        let isVerified = reply[UserInfoKey.verified] as? Bool == true
        Cinema.log(isVerified ? "the phone has verified it" : "the phone sees other tickets")
      },
      errorHandler: { error in
        Cinema.log(
          "the phone did not answer: \(error.localizedDescription)",
          .notice("The phone does not answer now. The QR codes come when it does."))
        guard tries > 1 else {
          return self.isUnanswered.store(true, ordering: .sequentiallyConsistent)
        }
        DispatchQueue.main.asyncAfter(deadline: .now() + 0.2) {
          self.askForQrCodes(tries: tries - 1)
        }
      })
  }

  /// Sends the next show to the watch's face.
  func updateComplication(_ movie: Movie?) {
    guard canSendToPeer() else { return }
    WCSession.default.transferCurrentComplicationUserInfo(
      [UserInfoKey.nextShow: movie.map { [$0.id] } ?? []])
  }

  private func canSendToPeer() -> Bool {
    let session = WCSession.default
    guard session.activationState == .activated else { return false }
    return Cinema.isPhone ? session.isWatchAppInstalled : session.isCompanionAppInstalled
  }

  // MARK: Receiving

  /// The QR codes first, because they may be wanted even if no ticket was bought.
  private func update(from dictionary: [String: Any], by way: String) {
    sendQrCodes(dictionary[UserInfoKey.qrCodes] as? [Int] ?? [])
    guard let ids = dictionary[UserInfoKey.purchased] as? [Int] else { return }
    Cinema.log("\(way) says \(ids)")
    // Only a notice: the shared value says which tickets are bought.
    DispatchQueue.main.async { TicketOffice.shared.refresh() }
  }

  private func sendQrCodes(_ ids: [Int]) {
    guard Cinema.isPhone else { return }
    for movie in ids.compactMap({ Movie.of($0) }) {
      do {
        let url = try TicketCodes.writeTemporary(movie)
        WCSession.default.transferFile(url, metadata: [UserInfoKey.qrCodes: movie.id])
        Cinema.log("sends the QR code of \(movie.id)")
        if Program.environment(Self.killingVariable) != nil {
          try Program.send(.kill, to: Program.processID)
        }
      } catch {
        Cinema.log(failure: "no QR code for \(movie.quoted): \(error.localizedDescription)")
      }
    }
  }
}

extension Connectivity: WCSessionDelegate {
  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    if let error { return Obstacle.activationFailed(error) }
    Cinema.log("session is active")
    DispatchQueue.main.async {
      TicketOffice.shared.refresh()
      TicketOffice.shared.updateComplication()
      TicketOffice.shared.didChange()
      // A watch begins with a message, which starts the phone.
      if !Cinema.isPhone { self.askForQrCodes() }
    }
    Cinema.log(obstacle: nil)
    Obstacle.log()
  }

  func sessionDidBecomeInactive(_ session: WCSession) {
    Cinema.log("session is inactive", .notice("The phone changes to another watch."))
  }

  // The user has switched to another watch, and everything from the previous one is delivered.
  func sessionDidDeactivate(_ session: WCSession) {
    Cinema.log("session is deactivated")
    WCSession.default.activate()
  }

  func sessionWatchStateDidChange(_ session: WCSession) { sessionReachabilityDidChange(session) }

  func sessionCompanionAppInstalledDidChange(_ session: WCSession) {
    sessionReachabilityDidChange(session)
  }

  func sessionReachabilityDidChange(_ session: WCSession) {
    Obstacle.log()
    let mustAsk =
      session.isReachable && isUnanswered.exchange(false, ordering: .sequentiallyConsistent)
    DispatchQueue.main.async {
      TicketOffice.shared.didChange()
      if mustAsk { self.askForQrCodes() }
    }
  }

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping ([String: Any]) -> Void
  ) {
    update(from: message, by: "question")
    replyHandler([UserInfoKey.verified: true])
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
    if let error {
      Cinema.log(failure: "a QR code did not reach the watch: \(error.localizedDescription)")
    }
    TicketCodes.remove(fileTransfer.file.fileURL)
  }

  // On the watch: when this returns the file is gone, unless it was moved.
  func session(_ session: WCSession, didReceive file: WCSessionFile) {
    guard let id = file.metadata?[UserInfoKey.qrCodes] as? Int else { return }
    do {
      try TicketCodes.take(file.fileURL, for: id)
      Cinema.log("received the QR code of \(id)")
    } catch {
      Cinema.log(failure: "the QR code of \(id) was not saved: \(error.localizedDescription)")
    }
    DispatchQueue.main.async {
      // The ticket was given back meanwhile, so its code is no longer needed.
      TicketCodes.removeFiles(except: TicketOffice.shared.purchased)
      TicketOffice.shared.didChange()
    }
  }
}

/// Why a side cannot reach the other one, in a sentence with a remedy. Unless the other side is
/// just not running, the user has to type a command.
enum Obstacle {
  /// Excludes: an older look is logged after a newer one, as if the obstacle had come back.
  private static let order = Mutex(())

  /// Logs the obstacle; logs nothing if the other side is just not running.
  static func log() {
    let session = WCSession.default
    guard session.activationState == .activated, !session.isReachable else { return }
    do {
      try order.withLock { _ in Cinema.log(obstacle: try pairing()) }
    } catch {
      Cinema.log(error)
    }
  }

  private static func pairing() throws -> String? {
    let state = try Pairing(of: Pairing.phone, in: Cinema.container).state()
    if Cinema.isPhone {
      guard let watch = state.active else { return "no watch is paired: \(command("NAME"))" }
      return watch.isAppInstalled
        ? nil : "\(watch.name) does not have the app: \(command(watch.name))"
    }
    let name = Cinema.watchName
    guard state[name] != nil else { return "this watch is not paired: \(command(name))" }
    let active = state.activeName
    return active == name
      ? nil : "the phone's watch is \(active ?? "none"): \(command("--activate", name))"
  }

  /// The process of the other side; nil if there is none, or this machine does not see it.
  static func otherSide() throws -> (processID: Int32, isSuspended: Bool)? {
    let phone = Pairing.phone
    let name =
      Cinema.isPhone ? try Pairing(of: phone, in: Cinema.container).state().activeName : phone
    let peers = try Diagnostics.reportingFaults { try Peer.all(in: Cinema.container, &$0) }
    switch peers.first(where: { $0.name == name })?.reachability {
    case .suspended(let member): return (member.processID, true)
    case .reachable(let member) where member.state == .running: return (member.processID, false)
    default: return nil
    }
  }

  private static func command(_ words: String...) -> String {
    (["wormhole"] + Cinema.options.containerArguments + ["peer", "pairing"] + words)
      .map(\.quotedForShell).joined(separator: " ")
  }

  /// Logs why there is no session; tries again if another process has it.
  static func activationFailed(_ error: any Error) {
    let failure = error as? WCError
    Cinema.log(obstacle: "no session: \(failure?.failureReason ?? error.localizedDescription)")
    guard failure?.code == .sessionNotActivated else { return }
    DispatchQueue.main.asyncAfter(deadline: .now() + 1) { WCSession.default.activate() }
  }
}
