import WatchConnectivity
import Wormhole
import WormholePeers
import WormholeSystem

// The counterpart's device as the side under test sees it; each call changes one value.
extension Counterpart {
  /// Sets whether the counterpart has the app: `isWatchAppInstalled` or `isCompanionAppInstalled`.
  ///
  /// - Throws: `WormholeError`, an error of the container.
  public func setAppInstalled(_ isInstalled: Bool, isComplicationEnabled: Bool = true) throws {
    try pairing.pair(
      Pairing.Companion(
        name: name, isAppInstalled: isInstalled, isComplicationEnabled: isComplicationEnabled))
  }

  /// Ends the pairing of the phone with the watch, whichever of them the counterpart is. What waits
  /// between the two is cancelled.
  ///
  /// - Throws: as `setAppInstalled`.
  public func unpair() throws {
    _ = try phonePairing.unpair(role == .watch ? name : other)
  }

  /// Returns as another watch: leaves, is paired under the new name and becomes the active watch.
  /// The phone's session becomes inactive, is deactivated, and continues with it once activated.
  ///
  /// - Parameters:
  ///   - newName: the other watch's name.
  ///   - script: how the other watch handles messages.
  ///   - deadline: as with `arrive`.
  /// - Returns: the other watch; this counterpart has left, and may arrive again.
  /// - Throws: `WormholeError`: `unsupportedValue` for a phone, and as `arrive`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func comeBack(
    as newName: String, script: [Step] = [], until deadline: ContinuousClock.Instant? = nil
  ) throws -> Counterpart {
    let next = try exchange(for: newName, script)
    try next.arrive(until: deadline)
    return next
  }

  /// Returns as another watch; see the form without `async`.
  public func comeBack(
    as newName: String, script: [Step] = [], until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Counterpart {
    let next = try await Blocking.run { try self.exchange(for: newName, script) }
    try await next.arrive(until: deadline)
    return next
  }

  private func exchange(for newName: String, _ script: [Step]) throws -> Counterpart {
    guard role == .watch else {
      throw WormholeError(
        .unsupportedValue, "return as another phone", peer: newName,
        reason: "a phone has several watches, and a watch has one phone",
        remedy: "make a counterpart that is a watch")
    }
    leave()
    // The first watch paired by name replaces the standard watch.
    if let paired = try phonePairing.state()[name] { try phonePairing.pair(paired) }
    try phonePairing.pair(.init(name: newName))
    _ = try phonePairing.activate(newName)
    return Counterpart(.watch, watchName: newName, in: container, script: script)
  }

  private var phonePairing: Pairing { Pairing(of: Pairing.phone, in: container) }

  /// The pairing in which the counterpart is a companion.
  private var pairing: Pairing {
    role == .watch ? phonePairing : Pairing(of: other, in: container)
  }
}
