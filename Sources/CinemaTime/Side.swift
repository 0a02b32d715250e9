import AppGroup
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
