import Foundation
import Wormhole
import WormholePeers

/// The pairing as one side sees it at one moment: read once for all decisions of one call.
struct PairingView: Sendable {
  /// The phone's watches.
  let phone: Pairing.State
  /// What this watch knows of its phone; nil on the phone.
  private let watch: Result<Pairing.State, any Error>?
  /// This side's name among the peers.
  private let name: String

  /// - Complexity: reads one file, on a watch two.
  init(_ setup: SessionSetup) throws {
    phone = try setup.phonePairing.state()
    watch = setup.watchPairing.map { pairing in Result { try pairing.state() } }
    name = setup.peer.name
  }

  /// On the phone: the active watch; nil on a watch.
  var activeWatch: Pairing.Companion? { watch == nil ? phone.active : nil }

  var isPaired: Bool { watch == nil ? phone.active != nil : phone[name] != nil }

  /// On the watch: whether the phone has the app; false on the phone.
  func hasPhoneApp() throws -> Bool {
    guard let watch, isPaired else { return false }
    return try watch.get().active?.isAppInstalled == true
  }

  /// Whether the other side has the app: one answer for both sides' properties, because on Linux
  /// code that asks `#if os(watchOS)` asks the phone's property on a watch, too.
  func hasCounterpartApp() throws -> Bool {
    try watch == nil ? phone.active?.isAppInstalled == true : hasPhoneApp()
  }

  /// The watch that the phone's properties describe: the active one, or on a watch itself.
  var watchInQuestion: Pairing.Companion? { watch == nil ? phone.active : phone[name] }

  /// The phone, or the watch that is active.
  var counterpart: String? { watch == nil ? phone.activeName : Pairing.phone }

  /// Whether the pairing lets this side and a counterpart communicate.
  func allows(_ counterpart: String?) throws -> Bool {
    guard watch == nil else {
      return try PeerNames.areSame(phone.activeName, name) && hasPhoneApp()
    }
    return PeerNames.areSame(phone.activeName, counterpart) && phone.active?.isAppInstalled == true
  }

  /// The counterpart that can be sent to, now or when it runs.
  ///
  /// - Throws: `WCError`: `deviceNotPaired`, `watchAppNotInstalled`, `companionAppNotInstalled`.
  func receiver(_ counterpart: String?) throws -> String {
    guard watch == nil else {
      guard isPaired else {
        throw WCError(
          .deviceNotPaired,
          reason: "Pair this watch with the phone: wormhole peer pairing \(name).")
      }
      guard try hasPhoneApp() else { throw WCError(.companionAppNotInstalled) }
      return Pairing.phone
    }
    guard let counterpart, let watch = phone[counterpart] else {
      throw WCError(
        .deviceNotPaired, reason: "Pair a watch with the phone: wormhole peer pairing NAME.")
    }
    guard watch.isAppInstalled else { throw WCError(.watchAppNotInstalled) }
    return counterpart
  }
}

/// The session properties whose changes are reported to the delegate.
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
  /// - Returns: nil if a part cannot be read for the moment, which is reported: that is not a
  ///   change. A damaged part counts as absent.
  init?(_ link: SessionLink, _ reachability: PeerReachability?) {
    let setup = link.setup
    if setup.role == .phone { watch = Watch() }
    do {
      let pairing = try PairingView(setup)
      watch?.isPaired = pairing.isPaired
      watch?.isAppInstalled = pairing.activeWatch?.isAppInstalled ?? false
      watch?.isComplicationEnabled = pairing.activeWatch?.isComplicationEnabled ?? false
      isCompanionAppInstalled = try pairing.hasPhoneApp()
      isReachable =
        try reachability.map(setup.accepts) == true && pairing.allows(link.counterpart)
      watch?.remainingTransfers = try pairing.remainingComplicationTransfers(in: setup)
    } catch {
      Diagnostics.report(error)
      if WormholeError.maySucceedLater(error) { return nil }
    }
  }
}
