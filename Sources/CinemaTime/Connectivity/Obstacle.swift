import Foundation
import PeerConnectivity
import Synchronization
import WatchConnectivity

/// What keeps a side from the other one, in a sentence that says what to do: where it is not the other's
/// absence, somebody has to type a command.
enum Obstacle {
  private static let lastFailure = Mutex<String?>(nil)

  /// Says what is in the way; nothing if it is only that the other side does not run.
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
    // As WCSession has it.
    let pairing = PeerPairing(Cinema.container, of: "phone", defaultCompanion: "watch")
    let state = try pairing.state()
    if Cinema.isPhone {
      guard let watch = state.active else {
        return "no watch is paired: \(command("pair NAME"))"
      }
      return watch.isAppInstalled
        ? nil : "\(watch.name) does not have the app: \(command("pair \(quoted(watch.name))"))"
    }
    let name = Cinema.watchName
    guard state.companions.contains(where: { $0.name == name }) else {
      return "this watch is not paired: \(command("pair \(quoted(name))"))"
    }
    guard state.activeName != name else { return nil }
    return
      "the phone's watch is \(state.activeName ?? "none"): \(command("switch \(quoted(name))"))"
  }

  private static func command(_ words: String) -> String {
    let container = Cinema.options.containerArguments.map(quoted).joined(separator: " ")
    return "wormhole \(container) peer \(words)"
  }

  private static func quoted(_ word: String) -> String {
    let isPlain = word.allSatisfy {
      $0.isASCII && ($0.isLetter || $0.isNumber || "-._/".contains($0))
    }
    return isPlain ? word : "'\(word.replacing("'", with: "'\\''"))'"
  }

  /// Says why there is no session, once for each reason; tries again where another process has it.
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
