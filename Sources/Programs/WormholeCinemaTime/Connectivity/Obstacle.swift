import Foundation
import WatchConnectivity
import WormholePeers
import WormholeWorkshop

/// The reason why a side cannot reach the other one, in a sentence with a remedy. Unless the other
/// side just does not run, the user has to type a command.
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
      guard let watch = state.active else { return "no watch is paired: \(command("add", "NAME"))" }
      return watch.isAppInstalled
        ? nil : "\(watch.name) does not have the app: \(command("add", watch.name))"
    }
    let name = Cinema.watchName
    guard state[name] != nil else { return "this watch is not paired: \(command("add", name))" }
    let active = state.activeName
    return active == name
      ? nil : "the phone's watch is \(active ?? "none"): \(command("switch", name))"
  }

  private static func command(_ verb: String, _ name: String) -> String {
    (["wormhole"] + Cinema.options.containerArguments + ["pairing", verb, name])
      .map(\.quotedForShell).joined(separator: " ")
  }

  /// Logs the reason why there is no session; tries again if another process has it.
  static func activationFailed(_ error: any Error) {
    let failure = error as? WCError
    Cinema.log(obstacle: "no session: \(failure?.failureReason ?? error.localizedDescription)")
    guard failure?.code == .sessionNotActivated else { return }
    DispatchQueue.main.asyncAfter(deadline: .now() + 1) { WCSession.default.activate() }
  }
}
