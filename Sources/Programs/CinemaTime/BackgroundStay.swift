import AppGroup
import Foundation
import WatchConnectivity

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
    if session.hasContentPending || !session.outstandingFileTransfers.isEmpty {
      lastWork = Date()
    }
    guard Date().timeIntervalSince(lastWork) < idle else { exit(0) }
    DispatchQueue.main.asyncAfter(deadline: .now() + 0.5) { look() }
  }
}
