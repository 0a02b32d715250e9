import AppGroup
import PeerConnectivity
import TestSupport

/// A container with a phone and a watch or two.
struct SessionScene {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let pairing: PeerPairing

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    pairing = PeerPairing(container, of: "phone", defaultCompanion: "watch")
  }

  /// A phone that is activated; see `SessionVerbs` for manners.
  func phone(_ manner: String = "full", replySeconds: Double = 20) throws -> Participant {
    try start("phone watch \(manner) \(replySeconds)")
  }

  /// A watch that is activated.
  func watch(
    _ name: String = "watch", _ manner: String = "full", replySeconds: Double = 20
  ) throws -> Participant {
    try start("watch \(name) \(manner) \(replySeconds)")
  }

  /// How `participant` is started as one of the two, by whoever needs it.
  func launch(_ role: String, for occasions: PeerLaunch.Occasions) throws {
    try PeerSession.setLaunch(
      PeerLaunch(
        program: BuiltProgram.path("participant"), arguments: ["session-serve"],
        environment: [
          "WATCHCONNECTIVITY_ROLE": role, "WORMHOLE_CONTAINER": directory.path,
          "WORMHOLE_GROUP": "",
        ], occasions: occasions), of: role, in: container)
  }

  private func start(_ words: String) throws -> Participant {
    let participant = try Participant(directory.path)
    let answer = try participant.ask("session-start \(words)")
    guard answer == "activated" else { throw NeverHappened(what: "\(words): \(answer)") }
    return participant
  }

  /// Pairs two watches, of which the one named "watch" is active.
  func pairTwo() throws {
    try pairing.pair(.init(name: "watch"))
    try pairing.pair(.init(name: "watch2"))
    _ = try pairing.activate("watch")
  }

  /// A file of the test's own.
  func file(_ name: String, _ content: String) throws -> String {
    let path = directory.path + "/" + name
    try Files.write(content, to: path)
    return path
  }
}

extension Participant {
  /// The event that begins so.
  func await(_ event: String) throws -> String { try ask("session-await \(event)") }

  /// What its delegate was told and was not awaited, but for what may come at any moment between.
  func story() throws -> String {
    try session("events").split(separator: "; ")
      .filter { !$0.hasPrefix("reachability") && $0 != "watchState" }.joined(separator: "; ")
  }

  /// Does something as a phone or a watch.
  func session(_ command: String) throws -> String { try ask("session-" + command) }
}
