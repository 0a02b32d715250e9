import Foundation
import Synchronization
import Wormhole
import WormholePeers

// The other side's state. Each property reads the pairing when it is called, so the answer is
// current; that costs reading one file, on a watch two.
extension WCSession {
  /// Whether the other side has the app, as the pairing says.
  var hasCounterpartApp: Bool {
    ask(false) { _, pairing in try pairing.hasCounterpartApp() }
  }

  func ask<Answer>(
    _ otherwise: Answer, _ body: (SessionSetup, PairingView) throws -> Answer
  ) -> Answer {
    guard let setup = validSetup else { return otherwise }
    // The first watch counts only once the session has a link to it: nothing can be sent before.
    if setup.role == .phone, let link, link.counterpart == nil { return otherwise }
    return Diagnostics.reporting(otherwise: otherwise) { try body(setup, PairingView(setup)) }
  }

  // MARK: Before sending

  /// The link and the counterpart for a transfer.
  struct Route {
    let link: SessionLink
    let counterpart: String
    /// The pairing that allows it.
    let pairing: PairingView

    var peer: PeerSession { link.setup.peer }
  }

  /// - Throws: `WCError`: the reason why nothing can be sent.
  func route() throws -> Route {
    let (activation, link) = state.withLock { ($0.activation, $0.link) }
    switch activation {
    case .notActivated: throw WCError(.sessionNotActivated)
    case .inactive: throw WCError(.sessionInactive)
    case .activated: break
    }
    guard delegate != nil else { throw WCError(.sessionMissingDelegate) }
    guard let link else { throw WCError(.sessionNotActivated) }
    // A transfer is a change, so it recreates a removed group.
    let pairing = try link.setup.container.changing { try PairingView(link.setup) }
    return Route(
      link: link, counterpart: try pairing.receiver(link.counterpart), pairing: pairing)
  }

  /// The route of a message, which needs a counterpart that is reachable now.
  ///
  /// - Throws: `WCError`: also `notReachable`.
  func routeToReachable() throws -> (Route, PeerReachability) {
    let route = try route()
    guard try route.pairing.allows(route.counterpart) else {
      throw WCError(
        .notReachable,
        reason: "The phone's active watch is \(route.pairing.phone.activeName ?? "none").")
    }
    let reachability = try route.peer.reachability(of: route.counterpart)
    // A request to a watch would start it; one to the phone may.
    guard route.link.setup.accepts(reachability) else {
      throw WCError(.notReachable, reason: WCError.sentence(reachability.reason))
    }
    return (route, reachability)
  }
}

extension SessionSetup {
  /// Whether a counterpart with this reachability gets a message.
  func accepts(_ reachability: PeerReachability) -> Bool {
    switch reachability {
    case .reachable: true
    case .launchable: role == .watch
    case .suspended, .gone, .neverSeen: false
    }
  }
}

extension PairingView {
  func remainingComplicationTransfers(in setup: SessionSetup) throws -> Int {
    guard let watch = watchInQuestion, watch.isComplicationEnabled else { return 0 }
    return try ComplicationTransfers(setup.container, watch: watch.name).remaining()
  }
}
