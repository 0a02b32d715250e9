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
    TicketOffice.shared.updateComplication()
    TicketOffice.shared.didChange()
    guard !Cinema.isPhone else { return }
    askForQrCodes()
  }

  /// Asks the phone for the codes that are missing; also again, a few times, if it does not answer, and
  /// in any case with the next change.
  @MainActor
  static func askForQrCodes(tries: Int = 3) {
    let purchased = TicketOffice.shared.purchased
    Connectivity.shared.send(
      movieIds: purchased.map(\.id), delivery: .failable, wantedQrCodes: QRCode.missing(purchased),
      replyHandler: { reply in
        let isVerified = reply[ConnectivityUserInfoKey.verified.rawValue] as? Bool == true
        Cinema.log(isVerified ? "the phone has verified it" : "the phone says something else")
      },
      errorHandler: { error in
        Cinema.log("the phone did not answer: \(error.localizedDescription)")
        guard tries > 1 else { return }
        DispatchQueue.main.asyncAfter(deadline: .now() + 0.2) { askForQrCodes(tries: tries - 1) }
      })
  }
}
