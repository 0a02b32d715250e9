import Foundation
import Synchronization
import WatchConnectivity
import WatchPairing

/// The reason why a side cannot reach the other one, in a sentence with a remedy. If the reason is
/// not just that the other side does not run, the user has to type a command.
enum Obstacle {
  private static let lastFailure = Mutex<String?>(nil)

  /// Logs the obstacle; logs nothing if the other side just does not run.
  static func log() {
    let session = WCSession.default
    guard session.activationState == .activated, !session.isReachable else { return }
    do {
      if let sentence = try pairing() { Cinema.log(sentence, isRepeated: false) }
    } catch {
      Cinema.log("\(error)")
    }
  }

  private static func pairing() throws -> String? {
    let state = try Pairing(of: Pairing.phone, in: Cinema.container).state()
    if Cinema.isPhone {
      guard let watch = state.active else {
        return "no watch is paired: \(command("add NAME"))"
      }
      return watch.isAppInstalled
        ? nil : "\(watch.name) does not have the app: \(command("add \(quoted(watch.name))"))"
    }
    let name = Cinema.watchName
    guard state[name] != nil else {
      return "this watch is not paired: \(command("add \(quoted(name))"))"
    }
    guard state.activeName != name else { return nil }
    return
      "the phone's watch is \(state.activeName ?? "none"): \(command("switch \(quoted(name))"))"
  }

  private static func command(_ words: String) -> String {
    let container = Cinema.options.containerArguments.map(quoted).joined(separator: " ")
    return "wormhole \(container) pairing \(words)"
  }

  private static func quoted(_ word: String) -> String {
    let isPlain = word.allSatisfy {
      $0.isASCII && ($0.isLetter || $0.isNumber || "-._/".contains($0))
    }
    return isPlain ? word : "'\(word.replacing("'", with: "'\\''"))'"
  }

  /// Logs the reason why there is no session, once for each reason; tries again if another process
  /// has it.
  static func activationFailed(_ error: any Error) {
    let failure = error as? WCError
    let sentence = "no session: \(failure?.failureReason ?? error.localizedDescription)"
    let isNew = lastFailure.withLock { last in
      defer { last = failure.map { "\($0.code)" } ?? sentence }
      return last != failure.map { "\($0.code)" } ?? sentence
    }
    if isNew { Cinema.log(sentence) }
    guard failure?.code == .sessionNotActivated else { return }
    DispatchQueue.main.asyncAfter(deadline: .now() + 1) { WCSession.default.activate() }
  }
}
