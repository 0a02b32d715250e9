import Foundation
import WatchConnectivity
import Wormhole
import WormholePeers
import WormholeSystem

/// The parts of an installed app on a real phone and its watch: the watch can wake the phone, and
/// finds out at once what it misses.
enum Installation {
  /// Registers how to start the phone: this program, in the background. Where that is not possible, as on
  /// etcd, it has to be started.
  static func register() throws {
    let phone = PeerLaunch(
      program: try Program.executablePath(),
      arguments: Cinema.options.containerArguments + ["phone", "--background"], occasions: .request)
    let registry = PeerLaunch.Registry(in: Cinema.container)
    do {
      if try registry.launch(of: "phone") != phone { try registry.set(phone, for: "phone") }
    } catch let error as PeerError where error.code == .notLaunched {
      let sentence = "the watch cannot start the phone: \(error.reason)"
      Cinema.log(sentence, .notice(sentence.asSentence))
    }
  }

  /// Sends the first message of a watch: its tickets, and the QR codes that it misses. The message
  /// starts the phone.
  @MainActor
  static func sessionDidActivate() {
    TicketOffice.shared.refresh()
    TicketOffice.shared.updateComplication()
    TicketOffice.shared.didChange()
    if !Cinema.isPhone { askForQrCodes() }
  }

  /// Shows the phone the tickets, and asks for the missing codes. If the phone does not answer, asks again a few times,
  /// and in any case with the next change.
  @MainActor
  static func askForQrCodes(tries: Int = 3) {
    Connectivity.shared.ask(
      about: TicketOffice.shared.purchased,
      replyHandler: { reply in
        let isVerified = reply[UserInfoKey.verified] as? Bool == true
        Cinema.log(isVerified ? "the phone has verified it" : "the phone sees other tickets")
      },
      errorHandler: { error in
        Cinema.log(
          "the phone did not answer: \(error.localizedDescription)",
          .notice("The phone does not answer now. The QR codes come when it does."))
        guard tries > 1 else { return }
        DispatchQueue.main.asyncAfter(deadline: .now() + 0.2) { askForQrCodes(tries: tries - 1) }
      })
  }
}

/// The stay of a phone that the watch has started: it ends when nothing is left to do.
@MainActor
enum BackgroundStay {
  /// The time without any activity after which the stay ends.
  private static let idle: TimeInterval = 3
  private static var lastWork = Date()
  private static var registration: NotificationRegistration?

  /// Posted by a phone that a user looks at; it replaces one in the background.
  static var takeover: DarwinNotification { Cinema.container.notification("phone in front") }

  static func begin() throws {
    registration = try takeover.observe(on: .main) { _ in exit(0) }
    TicketOffice.shared.didChange = { lastWork = Date() }
    look()
  }

  private static func look() {
    let session = WCSession.default
    if session.hasContentPending || !session.outstandingFileTransfers.isEmpty { lastWork = Date() }
    guard Date().timeIntervalSince(lastWork) < idle else { exit(0) }
    DispatchQueue.main.asyncAfter(deadline: .now() + 0.5) { look() }
  }
}
