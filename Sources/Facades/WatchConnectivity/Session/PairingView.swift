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
  init(_ place: SessionPlace) throws {
    phone = try place.phonePairing.state()
    watch = place.watchPairing.map { pairing in Result { try pairing.state() } }
    name = place.peer.name
  }

  /// On the phone: the active watch; nil on a watch.
  var activeWatch: Pairing.Companion? { watch == nil ? phone.active : nil }

  var isPaired: Bool { watch == nil ? phone.active != nil : phone[name] != nil }

  /// On the watch: whether the phone has the app; false on the phone.
  func hasPhoneApp() throws -> Bool {
    guard let watch, isPaired else { return false }
    return try watch.get().active?.isAppInstalled == true
  }

  /// The phone, or the watch that is active.
  var counterpart: String? { watch == nil ? phone.activeName : Pairing.phone }

  /// Whether the pairing lets this side and a counterpart communicate.
  func allows(_ counterpart: String?) throws -> Bool {
    guard watch == nil else { return try phone.activeName == name && hasPhoneApp() }
    return phone.activeName == counterpart && phone.active?.isAppInstalled == true
  }

  /// The counterpart that can be sent to, now or when it runs.
  ///
  /// - Throws: `WCError`: `deviceNotPaired`, `watchAppNotInstalled`, `companionAppNotInstalled`.
  func receiver(_ counterpart: String?) throws -> String {
    guard watch == nil else {
      guard isPaired else {
        throw WCError(
          .deviceNotPaired, reason: "Pair this watch with the phone: wormhole pairing add \(name).")
      }
      guard try hasPhoneApp() else { throw WCError(.companionAppNotInstalled) }
      return Pairing.phone
    }
    guard let counterpart, let watch = phone[counterpart] else {
      throw WCError(
        .deviceNotPaired, reason: "Pair a watch with the phone: wormhole pairing add NAME.")
    }
    guard watch.isAppInstalled else { throw WCError(.watchAppNotInstalled) }
    return counterpart
  }
}
