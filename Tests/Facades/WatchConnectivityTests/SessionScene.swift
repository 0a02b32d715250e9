import Foundation
import Wormhole
import WormholePeers
import WormholeTestSupport

/// A container with a phone and one or two watches.
struct SessionScene {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let pairing: Pairing

  /// - Parameter isShared: Whether the container is for the members of a Unix group.
  init(isShared: Bool = false) throws {
    directory = try TemporaryDirectory()
    if isShared {
      try FileManager.default.setAttributes(
        [.posixPermissions: 0o2770], ofItemAtPath: directory.path)
      container = try SharedContainer(url: URL(filePath: directory.path), access: .group)
    } else {
      container = try directory.container()
    }
    pairing = Pairing(of: "phone", in: container)
  }

  /// Starts and activates a phone; see `SessionVerbs` for manners.
  func phone(_ manner: String = "full", replySeconds: Double = 20) throws -> Participant {
    try start("phone watch \(manner) \(replySeconds)")
  }

  /// Starts and activates a watch.
  func watch(
    _ name: String = "watch", _ manner: String = "full", replySeconds: Double = 20
  ) throws -> Participant {
    try start("watch \(name) \(manner) \(replySeconds)")
  }

  /// Registers `participant` as the program of one of the two roles.
  func launch(_ role: String, for occasions: PeerLaunch.Occasions) throws {
    try PeerLaunch.Registry(in: container).set(
      PeerLaunch(
        program: BuiltProgram.path("participant"), arguments: ["session-serve"],
        environment: [
          "WATCHCONNECTIVITY_ROLE": role, "WORMHOLE_CONTAINER": try directory.location,
          "WORMHOLE_GROUP": "",
        ], occasions: occasions), for: role)
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

  /// Creates a file of the test.
  func file(_ name: String, _ content: String) throws -> String {
    let path = directory.path + "/" + name
    try Files.write(content, to: path)
    return path
  }
}

extension Participant {
  /// Returns the first event with a prefix.
  func await(_ event: String) throws -> String { try ask("session-await \(event)") }

  /// Returns the delegate's events that were not awaited, without those that may come at any
  /// moment.
  func story() throws -> String {
    try session("events").split(separator: "; ")
      .filter { !$0.hasPrefix("reachability") && $0 != "watchState" }.joined(separator: "; ")
  }

  /// Executes a command as a phone or a watch.
  func session(_ command: String) throws -> String { try ask("session-" + command) }
}
