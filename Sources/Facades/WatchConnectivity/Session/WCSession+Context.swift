import Foundation
import Wormhole
import WormholePeers
import WormholePropertyLists

extension WCSession {
  func replaceContext(_ applicationContext: [String: Any]) throws {
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

  /// `applicationContext`, to be changed and updated: its content must not be lost because it
  /// cannot be read for a moment. A damaged one is reported, and counts as empty.
  ///
  /// - Throws: `WCError` if it cannot be read.
  package func applicationContextToChange() throws -> [String: Any] {
    do {
      return try context { try $0.context(for: $1) }
    } catch let error as WormholeError where error.code == .damaged {
      Diagnostics.report(error)
      return [:]
    } catch {
      throw WCError(error, of: .transfer)
    }
  }

  func context(
    _ read: (PeerSession, String) throws -> PropertyListValue?
  ) throws -> [String: Any] {
    guard let setup = validSetup,
      let counterpart = try link?.counterpart ?? PairingView(setup).counterpart
    else { return [:] }
    return Payload.objects(try read(setup.peer, counterpart)) ?? [:]
  }
}
