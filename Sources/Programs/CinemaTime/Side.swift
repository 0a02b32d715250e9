import AppGroup
import Foundation
import SystemCalls
import WatchConnectivity

/// One running side: it opens the office, begins the session, and reads commands if there is a
/// user.
@MainActor
enum Side {
  static func begin() {
    do {
      try TicketOffice.shared.open()
      try Installation.register()
      if Cinema.options.isInBackground {
        try BackgroundStay.begin()
      } else if Cinema.isPhone {
        try BackgroundStay.takeover.post()
      }
    } catch {
      Main.fail("\(error)", 74)
    }
    _ = Connectivity.shared
    if Cinema.options.isInBackground { return }
    if Program.isTerminal(0), Program.isTerminal(1) {
      Screen.shared.begin()
    } else {
      CommandLoop.begin()
    }
  }
}
