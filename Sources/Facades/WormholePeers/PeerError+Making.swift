import Wormhole
import WormholePropertyLists

extension PeerError {
  static func cancelled(_ peer: String) -> PeerError {
    PeerError(
      .cancelled, "ask \"\(peer)\"", peer: peer, reason: "its caller has cancelled it")
  }

  static func closed(_ peer: String) -> PeerError {
    PeerError(
      .cancelled, "ask \"\(peer)\"", peer: peer, reason: "the session was closed meanwhile")
  }

  static func unreachable(_ peer: String, _ reason: String) -> PeerError {
    PeerError(
      .unreachable, "ask \"\(peer)\"", peer: peer, reason: reason,
      remedy: "start it, or register how it is to be started")
  }

  /// The peer has ended before it answered.
  static func ended(_ peer: String, _ member: PresenceMember, reason: String) -> PeerError {
    PeerError(
      .unreachable, "ask \"\(peer)\"", peer: peer,
      reason: "process \(member.processID) (\(member.program)) did not answer before \(reason)",
      remedy: "it may have handled the request: ask again only if that does no harm")
  }

  static func full(_ peer: String, _ member: PresenceMember) -> PeerError {
    PeerError(
      .queueFull, "ask \"\(peer)\"", peer: peer,
      reason: "too much waits for process \(member.processID) (\(member.program)) already",
      remedy: "wait until it has caught up; it may be stopped")
  }

  static func timedOut(_ peer: String, _ reachability: PeerReachability?) -> PeerError {
    let reason = reachability.map(\.reason) ?? "the reason is not known"
    return PeerError(
      .timedOut, "ask \"\(peer)\"", peer: peer, reason: "no answer came in time: \(reason)",
      remedy: "it may have handled the request, or may still do so", holder: reachability?.holder)
  }

  static func replaced(_ name: String, _ holder: LeaseHolder?) -> PeerError {
    PeerError(
      .replaced, "be active as \"\(name)\"",
      reason: "\(holder.map { "\($0)" } ?? "another process") is active under that name",
      remedy: "activate again when it has ended", holder: holder)
  }

  static func notActive(_ name: String) -> PeerError {
    PeerError(
      .notActive, "be active as \"\(name)\"", reason: "the session is not active",
      remedy: "activate it")
  }
}

extension PropertyListValue {
  /// A value that a peer sent, decoded as a type of the program.
  ///
  /// - Throws: `PeerError`: `unexpectedValue`.
  func decoded<Content: Decodable>(
    as type: Content.Type, _ action: @autoclosure () -> String, from peer: String
  ) throws(PeerError) -> Content {
    do {
      return try decode(as: type)
    } catch {
      throw PeerError(
        .unexpectedValue, action(), peer: peer, reason: "it is no \(type): \(error)",
        remedy: "agree with the peer on the type that is sent")
    }
  }
}
