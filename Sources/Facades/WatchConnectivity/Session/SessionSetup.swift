import Foundation
import Wormhole
import WormholePeers

/// The container and the role of a session, by the configuration call or the environment.
struct SessionSetup: Sendable {
  /// How long a message waits for its reply by default.
  static let standardReplyTimeout: Duration = .seconds(300)

  /// How long an activation waits for another process of its side: long enough, even on a busy
  /// machine, to see that it is stopped, or for it to end if it is about to.
  static let patience: Duration = .seconds(2)

  let role: WCSession.Role
  let container: SharedContainer
  /// This process among the peers.
  let peer: PeerSession
  /// The phone's watches.
  let phonePairing: Pairing
  /// What this watch knows of its phone; nil on the phone.
  let watchPairing: Pairing?
  let replyTimeout: Duration

  /// - Throws: `WCError`: `sessionNotSupported` for a name that is invalid for a peer.
  init(
    role: WCSession.Role, container: SharedContainer, watchName: String, replyTimeout: Duration
  ) throws {
    self.role = role
    self.container = container
    self.replyTimeout = replyTimeout
    let name = role == .phone ? Pairing.phone : watchName
    do {
      guard watchName != Pairing.phone else {
        throw Self.notSupported("A watch cannot be named \"\(Pairing.phone)\".")
      }
      peer = try PeerSession(name, in: container)
    } catch let error as WormholeError {
      throw Self.notSupported("\(error).", error)
    }
    phonePairing = Pairing(of: Pairing.phone, in: container)
    watchPairing = role == .watch ? Pairing(of: name, in: container) : nil
  }

  /// The setup that the environment sets.
  ///
  /// - Throws: `WCError`: `sessionNotSupported`, saying which variable is missing or wrong.
  init(environment: [String: String]) throws {
    guard let text = environment["WATCHCONNECTIVITY_ROLE"] else {
      throw Self.notSupported(
        "Set WATCHCONNECTIVITY_ROLE to phone or watch, or call WCSession.configure first.")
    }
    guard let role = WCSession.Role(rawValue: text) else {
      throw Self.notSupported(
        "WATCHCONNECTIVITY_ROLE is \"\(text)\"; it must be phone or watch.")
    }
    try self.init(
      role: role, container: Self.container(environment),
      watchName: environment["WATCHCONNECTIVITY_WATCH"] ?? Pairing.standardWatch,
      replyTimeout: try Self.replyTimeout(environment))
  }

  private static func container(_ environment: [String: String]) throws -> SharedContainer {
    // As with the `wormhole` command: an empty variable counts as unset, and only one may be set.
    let named = ["WORMHOLE_GROUP", "WORMHOLE_CONTAINER"].map { name in
      environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
    do {
      switch (named[0], named[1]) {
      case (let group?, nil): return try SharedContainer(group: group)
      case (nil, let location?): return try SharedContainer(location: location)
      case (_?, _?):
        throw notSupported("WORMHOLE_GROUP and WORMHOLE_CONTAINER are both set: unset one.")
      case (nil, nil):
        throw notSupported(
          "Set WORMHOLE_GROUP or WORMHOLE_CONTAINER, or call WCSession.configure first.")
      }
    } catch let error as WormholeError {
      throw notSupported("\(error).", error)
    }
  }

  private static func replyTimeout(_ environment: [String: String]) throws -> Duration {
    guard let text = environment["WATCHCONNECTIVITY_REPLY_TIMEOUT"] else {
      return standardReplyTimeout
    }
    guard let seconds = Double(text), seconds > 0, seconds < 1e9 else {
      throw notSupported(
        "WATCHCONNECTIVITY_REPLY_TIMEOUT is \"\(text)\"; it must be a number of seconds.")
    }
    return .seconds(seconds)
  }

  private static func notSupported(_ reason: String, _ cause: (any Error)? = nil) -> WCError {
    WCError(.sessionNotSupported, reason: reason, underlying: cause)
  }
}
