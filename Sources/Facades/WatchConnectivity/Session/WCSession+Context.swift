import Foundation
import Wormhole
import WormholePeers
import WormholePropertyLists

extension WCSession {
  /// Replaces the counterpart's context: it gets the latest one, once, when it runs. Equal content
  /// is not delivered again.
  ///
  /// - Throws: `WCError.payloadUnsupportedTypes`, `.payloadTooLarge` beyond 262,144 bytes,
  ///   `.sessionNotActivated`, `.sessionInactive`, `.deviceNotPaired`, `.watchAppNotInstalled`, or
  ///   `.insufficientSpace`.
  public func updateApplicationContext(_ applicationContext: [String: Any]) throws {
    do {
      let value = try Payload.value(
        applicationContext, maximumBytes: Payload.maximumContextBytes)
      let route = try route()
      // One that cannot be read is replaced.
      let known = try? route.peer.context(for: route.counterpart)
      guard known != value else { return }
      try route.peer.setContext(value, for: route.counterpart)
    } catch {
      throw WCError(error, of: .transfer)
    }
  }

  /// The last context that this side sent with `updateApplicationContext`, in any of its processes;
  /// empty if it never sent one. Costs reading a file, as does `receivedApplicationContext`.
  public var applicationContext: [String: Any] { context { try $0.context(for: $1) } }

  /// The last context that the counterpart sent, in any of its processes; empty if it never sent
  /// one. It may be newer than the one that the delegate was given; then the delegate gets it next.
  public var receivedApplicationContext: [String: Any] { context { try $0.context(from: $1) } }

  private func context(
    _ read: (PeerSession, String) throws -> PropertyListValue?
  ) -> [String: Any] {
    guard let place = knownPlace else { return [:] }
    return Diagnostics.reporting(otherwise: [:]) {
      guard let counterpart = try link?.counterpart ?? PairingView(place).counterpart else {
        return [:]
      }
      return Payload.objects(try read(place.peer, counterpart)) ?? [:]
    }
  }
}
