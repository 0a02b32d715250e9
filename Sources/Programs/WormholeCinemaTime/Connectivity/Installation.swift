import Foundation
import WatchConnectivity
import Wormhole
import WormholePeers
import WormholeSystem
import WormholeTerminals

/// The counterpart of an app installed on a real phone: a program that the watch can wake.
enum Installation {
  /// Registers how to start the phone: this program, in the background. If that is not possible, as
  /// in a container that a Unix group shares, the user has to start it. On etcd only a phone registers
  /// itself, because the watch may be on another machine, where the phone is not installed.
  static func register() throws {
    guard Cinema.container.isLocal || Cinema.options.role == .phone else { return }
    let phone = PeerLaunch(
      program: try Program.executablePath(),
      arguments: Cinema.options.containerArguments + ["phone", "--background"], occasions: .request)
    let registry = PeerLaunch.Registry(in: Cinema.container)
    do {
      if try registry.launch(of: "phone") != phone { try registry.set(phone, for: "phone") }
    } catch let error as WormholeError where error.code == .notLaunched {
      let sentence = "the watch cannot start the phone: \(error.reason)"
      Cinema.log(sentence, .notice(sentence.capitalizedFirst))
    }
  }
}

/// The life of a phone that the watch has started: it ends when no work is left.
@MainActor
enum BackgroundStay {
  /// The time without any activity after which it ends.
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
