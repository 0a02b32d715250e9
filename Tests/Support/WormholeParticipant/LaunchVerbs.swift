import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem

/// The verbs of a participant about starting peers.
///
/// ```
/// launch PEER [SECONDS] [OCCASION]   starts it for a request, and waits until it is active
/// begin PEER [OCCASION]              starts it for queued work, and does not wait
/// ```
///
/// If it was started as a peer's program, with the words "launched PEER MANNER" after its
/// container, it adds itself to the value "launched", and ends when it is killed or its container
/// is gone. Manners:
///
/// ```
/// active      becomes active at once
/// patient     becomes active when the value "go" exists
/// passing     becomes active for a moment, and continues without being active
/// idle        never becomes active
/// receiving   becomes active, and notes the messages it receives in "launched.log"
/// ```
enum LaunchVerbs {
  static let all: Set<String> = ["launch", "begin"]

  private static let occasions: [String: PeerLaunch.Occasions] = [
    "request": .request, "queued": .queuedWork, "urgent": .urgentWork,
  ]

  static func perform(
    _ verb: String, _ peer: String, _ arguments: [String], _ container: SharedContainer
  ) throws -> String {
    let occasion = arguments.last.flatMap { occasions[$0] }
    do {
      switch verb {
      case "launch":
        let seconds = arguments.first.flatMap { Double($0) } ?? 20
        let isLaunched = try Launcher.launch(
          peer, for: occasion ?? .request, in: container, until: .now + .seconds(seconds))
        return "\(isLaunched)"
      default:
        let isLaunched = try Launcher.launch(
          peer, for: occasion ?? .queuedWork, in: container, until: nil)
        return "\(isLaunched)"
      }
    } catch {
      return "error \(error.code.rawValue) \(error)"
    }
  }

  /// Acts as a peer's program until its test is over.
  static func beLaunched(
    _ peer: String, _ manner: String, _ container: SharedContainer
  ) throws {
    let own = ProcessIdentity.current
    let entry: PropertyListValue = [
      "pid": .integer(Int64(own.processID)), "started": PropertyListValue(own.startTicks),
    ]
    try container.value("launched").update { $0 = .array(($0?.arrayValue ?? []) + [entry]) }
    print("started as \(manner)")
    let presence = container.own.presence(PeerNames.presence(peer))
    while try manner == "patient" && container.value("go").read() == nil && lasts() {
      pauseThread(.milliseconds(5))
    }
    let deadline = Launcher.roleDeadline(nil, for: peer)
    let registration = try manner == "idle" ? nil : presence.enterExclusively(until: deadline)
    if manner == "passing" { registration?.close() }
    if manner == "receiving" {
      _ = try PeerMessageVerbs.perform(
        "message-handle", PeerSession(peer, in: container),
        [CommandLine.arguments[1] + "/launched.log"])
    }
    while lasts() { pauseThread(.milliseconds(20)) }
    withExtendedLifetime(registration) {}
  }

  private static func lasts() -> Bool {
    do throws(Errno) {
      return try fileStatus(CommandLine.arguments[1]).kind == .directory
    } catch {
      // Gone.
      return false
    }
  }
}
