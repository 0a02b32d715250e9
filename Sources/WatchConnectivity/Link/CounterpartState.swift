import Foundation
import PeerConnectivity

/// The properties of a session whose changes a delegate is told of.
struct CounterpartState: Sendable, Equatable {
  /// What belongs to the phone's view of its watch.
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

  /// - Parameter reachability: how the counterpart can be reached; nil when nobody knows yet.
  init(_ link: SessionLink, _ reachability: PeerReachability?) {
    let session = link.session
    switch link.place.role {
    case .phone:
      watch = Watch(
        isPaired: session.isPaired, isAppInstalled: session.isWatchAppInstalled,
        isComplicationEnabled: session.isComplicationEnabled,
        remainingTransfers: session.remainingComplicationUserInfoTransfers)
    case .watch: isCompanionAppInstalled = session.isCompanionAppInstalled
    }
    isReachable = link.isReachable(reachability)
  }
}
