import WatchConnectivity
import Wormhole
import WormholePeers
import WormholeSystem

// What the side under test knows of the counterpart's device; each call changes one value of the container.
extension Counterpart {
  /// Says whether the counterpart has the app: `isWatchAppInstalled`, or `isCompanionAppInstalled` on a watch.
  ///
  /// - Throws: `PeerError`, an error of the container.
  public func setAppInstalled(_ isInstalled: Bool, isComplicationEnabled: Bool = true) throws {
    try pairing.pair(
      Pairing.Companion(
        name: name, isAppInstalled: isInstalled, isComplicationEnabled: isComplicationEnabled))
  }

  /// Ends the pairing of the phone with the watch, whichever of both the counterpart is.
  ///
  /// - Throws: as `setAppInstalled`.
  public func unpair() throws {
    _ = try phonePairing.unpair(role == .watch ? name : other)
  }

  /// Comes back as another watch: leaves, is paired under the new name, and is the phone's active watch. The
  /// phone's session becomes inactive, is deactivated, and begins with the new watch when it is activated.
  ///
  /// - Parameters:
  ///   - newName: the other watch's name.
  ///   - script: what that does with messages.
  ///   - deadline: as with `arrive`.
  /// - Returns: the other watch; this counterpart is not there any more, and may arrive again.
  /// - Precondition: the counterpart is a watch.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func comeBack(
    as newName: String, script: [Step] = [], until deadline: ContinuousClock.Instant? = nil
  ) throws -> Counterpart {
    let next = try exchange(for: newName, script)
    try next.arrive(until: deadline)
    return next
  }

  /// Comes back as another watch; see the form without `async`.
  public func comeBack(
    as newName: String, script: [Step] = [], until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Counterpart {
    let next = try await Blocking.run { try self.exchange(for: newName, script) }
    try await next.arrive(until: deadline)
    return next
  }

  private func exchange(for newName: String, _ script: [Step]) throws -> Counterpart {
    precondition(role == .watch, "a phone has several watches, a watch has one phone")
    leave()
    // The first that is paired by name takes the place of the standard watch.
    if try phonePairing.state()[name] != nil { try phonePairing.pair(.init(name: name)) }
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
