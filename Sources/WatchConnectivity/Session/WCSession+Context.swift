import AppGroup
import Foundation
import PeerConnectivity
import PropertyLists

extension WCSession {
  /// Replaces what the counterpart is to know: it gets the latest one, when it runs, once. The same
  /// content again is not delivered again.
  ///
  /// - Throws: `WCError`: `payloadUnsupportedTypes`, `payloadTooLarge` beyond 262,144 bytes,
  ///   `sessionNotActivated`, `sessionInactive`, `deviceNotPaired`, `watchAppNotInstalled`, or
  ///   `insufficientSpace`.
  public func updateApplicationContext(_ applicationContext: [String: Any]) throws {
    do {
      let value = try Payload.value(
        applicationContext, maximumBytes: Payload.maximumContextBytes)
      let (link, counterpart) = try linkForSending()
      guard try link.place.peer.context(for: counterpart) != value else { return }
      try link.place.peer.setContext(value, for: counterpart)
    } catch {
      throw WCError(error, of: .transfer)
    }
  }

  /// What this side sent last with `updateApplicationContext`, in whichever process; empty if it never
  /// did. Costs reading a file, as does `receivedApplicationContext`.
  public var applicationContext: [String: Any] { context { try $0.context(for: $1) } }

  /// What the counterpart sent last, in whichever process; empty if it never did. It may be newer than
  /// what the delegate was told, and is then what it will be told next.
  public var receivedApplicationContext: [String: Any] { context { try $0.context(from: $1) } }

  private func context(
    _ read: (PeerSession, String) throws -> PropertyListValue?
  ) -> [String: Any] {
    guard let place = knownPlace else { return [:] }
    do {
      guard let counterpart = try link?.counterpart ?? place.counterpart() else { return [:] }
      return Payload.objects(try read(place.peer, counterpart)) ?? [:]
    } catch {
      Diagnostics.report(error)
      return [:]
    }
  }
}
