import ConnectivityTesting
import Foundation
import WatchConnectivity
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeTestSupport

@testable import WormholeCinemaTime

/// The processes of one test, and the side that the test plays itself.
final class ElementScene {
  let place: TemporaryDirectory
  let cast: StoryCast
  private var players: [Counterpart] = []

  init() throws {
    place = try TemporaryDirectory()
    cast = try StoryCast(in: place)
  }

  func phone() throws -> StorySide { try cast.start(.phone) }

  func watch() throws -> StorySide { try cast.start(.watch) }

  /// Plays a side in this process.
  func played(_ role: WCSession.Role, script: [Counterpart.Step] = []) throws -> Counterpart {
    let player = Counterpart(
      role, in: cast.container, script: script)
    try player.arrive()
    players.append(player)
    return player
  }

  /// Leaves with the sides that are played.
  func leave() {
    for player in players { player.leave() }
    players = []
  }

  func end() {
    leave()
    cast.end()
  }
}

extension Counterpart {
  /// Takes things until one of a kind comes; those for the watch's face are passed over.
  func next(_ kind: Received.Kind) throws -> Received {
    let deadline = soon
    while true {
      let received = try next(until: deadline)
      if received.kind == kind, received.value["nextShow"] == nil { return received }
    }
  }

  /// The tickets of the next dictionaries.
  func purchases(_ count: Int) throws -> [[Int]] {
    try (0..<count).map { _ in
      try next(.userInfo).value["purchased"]?.arrayValue?.compactMap(\.intValue) ?? []
    }
  }

  /// The next message for which a condition holds.
  func message(_ holds: (PropertyListValue) -> Bool) throws -> PropertyListValue? {
    while true {
      let value = try next(.message).value
      if holds(value) { return value }
    }
  }
}
