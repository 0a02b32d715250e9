import AppGroup
import Foundation
import PeerConnectivity
import SystemCalls
import WatchConnectivity

/// What an installed app has on a real phone and its watch: the watch can wake the phone, and finds
/// out at once what it misses.
enum Installation {
  /// Registers how the phone is started: by this very program, in the background.
  static func register() throws {
    let phone = PeerLaunch(
      program: try Program.executablePath(),
      arguments: Cinema.options.containerArguments + ["phone", "--background"],
      occasions: .request)
    guard try PeerSession.launch(of: "phone", in: Cinema.container) != phone else { return }
    try PeerSession.setLaunch(phone, of: "phone", in: Cinema.container)
  }

  /// The first words of a watch: what it has, and which QR codes it misses. They start the phone.
  @MainActor
  static func sessionDidActivate() {
    TicketOffice.shared.refresh()
    TicketOffice.shared.didChange()
    guard !Cinema.isPhone else { return }
    askForQrCodes()
  }

  /// Asks the phone for the codes that are missing; those that do not come are asked for again with
  /// the next change.
  @MainActor
  static func askForQrCodes() {
    let purchased = TicketOffice.shared.purchased
    Connectivity.shared.send(
      movieIds: purchased.map(\.id), delivery: .failable, wantedQrCodes: QRCode.missing(purchased),
      replyHandler: { reply in
        let isVerified = reply[ConnectivityUserInfoKey.verified.rawValue] as? Bool == true
        Cinema.log(isVerified ? "the phone has verified it" : "the phone says something else")
      },
      errorHandler: { Cinema.log("the phone was not reached: \($0.localizedDescription)") })
  }
}
