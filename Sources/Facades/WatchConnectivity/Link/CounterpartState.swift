import Foundation
import Wormhole
import WormholePeers

/// The properties of a session whose changes the delegate learns of.
struct CounterpartState: Sendable, Equatable {
  /// The phone's view of its watch.
  struct Watch: Sendable, Equatable {
    var isPaired = false
    var isAppInstalled = false
    var isComplicationEnabled = false
    var remainingTransfers = 0
  }

  var watch: Watch?
  var isCompanionAppInstalled = false
  var isReachable = false

  init() {}

  /// - Parameter reachability: how the counterpart can be reached; nil if that is still unknown.
  init(_ link: SessionLink, _ reachability: PeerReachability?) {
    let place = link.place
    if place.role == .phone { watch = Watch() }
    do {
      let pairing = try PairingView(place)
      watch?.isPaired = pairing.isPaired
      watch?.isAppInstalled = pairing.activeWatch?.isAppInstalled ?? false
      watch?.isComplicationEnabled = pairing.activeWatch?.isComplicationEnabled ?? false
      isCompanionAppInstalled = try pairing.hasPhoneApp()
      isReachable =
        try reachability.map(place.accepts) == true && pairing.allows(link.counterpart)
      watch?.remainingTransfers = try pairing.remainingComplicationTransfers(in: place)
    } catch {
      // A value that cannot be read counts as absent.
      Diagnostics.report(error)
    }
  }
}
