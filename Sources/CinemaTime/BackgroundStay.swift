import AppGroup
import Foundation
import WatchConnectivity

/// A phone that the watch has started: it stays for as long as something is left to do.
@MainActor
enum BackgroundStay {
  /// How long nothing must happen.
  private static let idle: TimeInterval = 3
  private static var lastWork = Date()

  private static var registration: NotificationRegistration?

  /// Posted by a phone that somebody looks at: it takes the place of one in the background.
  static var takeover: AppGroup.Notification { Cinema.container.notification("phone in front") }

  static func begin() throws {
    registration = try takeover.observe(on: .main) { _ in exit(0) }
    TicketOffice.shared.didChange = { lastWork = Date() }
    look()
  }

  static func note() { lastWork = Date() }

  private static func look() {
    let session = WCSession.default
    if session.hasContentPending || !session.outstandingFileTransfers.isEmpty { note() }
    guard Date().timeIntervalSince(lastWork) < idle else { exit(0) }
    DispatchQueue.main.asyncAfter(deadline: .now() + 0.5) { look() }
  }
}
