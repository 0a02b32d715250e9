import Foundation
import SystemCalls
import WatchConnectivity

/// One side at work: the office opens, the session begins, and somebody types, or nobody does.
@MainActor
enum Side {
  static func begin() {
    do {
      try TicketOffice.shared.open()
      try Installation.register()
    } catch {
      Main.fail("\(error)", 74)
    }
    _ = Connectivity.shared
    if Cinema.options.isInBackground {
      BackgroundStay.begin()
    } else if Program.isTerminal(0), Program.isTerminal(1) {
      Screen.shared.begin()
    } else {
      CommandLoop.begin()
    }
  }
}
