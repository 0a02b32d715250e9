import Foundation
import WatchConnectivity
import WormholePeers

/// The reason why a side cannot reach the other one, in a sentence with a remedy. If the reason is
/// not just that the other side does not run, the user has to type a command.
enum Obstacle {
  /// Logs the obstacle; logs nothing if the other side just does not run.
  static func log() {
    let session = WCSession.default
    guard session.activationState == .activated, !session.isReachable else { return }
    do {
      Cinema.log(obstacle: try pairing())
    } catch {
      Cinema.log(error)
    }
  }

  private static func pairing() throws -> String? {
    let state = try Pairing(of: Pairing.phone, in: Cinema.container).state()
    if Cinema.isPhone {
      guard let watch = state.active else { return "no watch is paired: \(command("add NAME"))" }
      return watch.isAppInstalled
        ? nil
        : "\(watch.name) does not have the app: \(command("add \(watch.name.quotedForShell)"))"
    }
    let name = Cinema.watchName
    let argument = name.quotedForShell
    guard state[name] != nil else {
      return "this watch is not paired: \(command("add \(argument)"))"
    }
    let active = state.activeName
    return active == name
      ? nil : "the phone's watch is \(active ?? "none"): \(command("switch \(argument)"))"
  }

  private static func command(_ words: String) -> String {
    let container = Cinema.options.containerArguments.map(\.quotedForShell).joined(separator: " ")
    return "wormhole \(container) pairing \(words)"
  }

  /// Logs the reason why there is no session; tries again if another process has it.
  static func activationFailed(_ error: any Error) {
    let failure = error as? WCError
    Cinema.log(obstacle: "no session: \(failure?.failureReason ?? error.localizedDescription)")
    guard failure?.code == .sessionNotActivated else { return }
    DispatchQueue.main.asyncAfter(deadline: .now() + 1) { WCSession.default.activate() }
  }
}
