import AppGroup
public import Foundation
import PeerConnectivity
import Synchronization

// What is known of the other side. All of it is read when it is asked for, so that it is true then;
// each costs reading one file.
extension WCSession {
  /// On the phone: whether a watch is active, that is paired; on the watch: whether it is paired.
  public var isPaired: Bool {
    ask(false) { place in
      let state = try place.phonePairing.state()
      return place.role == .phone
        ? state.active != nil : state.companions.contains { $0.name == place.peer.name }
    }
  }

  /// On the phone: whether the active watch has the app, as its pairing says.
  public var isWatchAppInstalled: Bool { watch?.isAppInstalled ?? false }

  /// On the phone: whether the complication is on the active watch's face, as its pairing says.
  public var isComplicationEnabled: Bool { watch?.isComplicationEnabled ?? false }

  /// On the phone: how often `transferCurrentComplicationUserInfo` still starts the watch's app today
  /// (UTC); 0 while the complication is not enabled.
  public var remainingComplicationUserInfoTransfers: Int {
    ask(0) { place in
      guard place.role == .phone, let watch = try place.phonePairing.state().active,
        watch.isComplicationEnabled
      else { return 0 }
      return try ComplicationTransfers(place.container, watch: watch.name).remaining()
    }
  }

  /// On the phone: a directory for what belongs to the active watch, made at the first use; nil if no
  /// watch is active or it has no app. It is deleted by the first `activate()` after the watch was
  /// unpaired, or its app removed.
  public var watchDirectoryURL: URL? {
    ask(nil) { place in
      guard place.role == .phone, let watch = try place.phonePairing.state().active,
        watch.isAppInstalled
      else { return nil }
      return try WatchDirectory.url(of: watch.name, in: place)
    }
  }

  /// On the watch: whether the phone has the app. It has, unless the watch is not paired, or
  /// `wormhole peer pair phone --of WATCH --without-app` says otherwise.
  public var isCompanionAppInstalled: Bool {
    ask(false) { place in
      guard let pairing = place.watchPairing, isPaired else { return false }
      return try pairing.state().active?.isAppInstalled ?? false
    }
  }

  /// Always false: no process here is locked after a reboot.
  public var iOSDeviceNeedsUnlockAfterRebootForReachability: Bool { false }

  /// Whether a message would be delivered now: the session is activated, and the counterpart's is, in
  /// a process that is not stopped. For the watch it is enough that a message would start the phone's
  /// app; a watch that is not the active one reaches nobody.
  ///
  /// An answer that differs from what the delegate was told last is told to the delegate, too. A stop of
  /// the counterpart's process, which has no event, is told within a second also when nobody asks.
  public var isReachable: Bool {
    guard activationState == .activated, let link else { return false }
    return ask(false) { _ in try link.isReachable() }
  }

  private var watch: PeerPairing.Companion? {
    ask(nil) { $0.role == .phone ? try $0.phonePairing.state().active : nil }
  }

  private func ask<Answer>(_ otherwise: Answer, _ body: (SessionPlace) throws -> Answer) -> Answer {
    guard let place = knownPlace else { return otherwise }
    do {
      return try body(place)
    } catch {
      Diagnostics.report(error)
      return otherwise
    }
  }

  // MARK: Before something is sent

  /// What to send with, and to whom.
  ///
  /// - Throws: `WCError`, why nothing can be sent.
  func linkForSending() throws -> (SessionLink, String) {
    let (activation, link) = state.withLock { ($0.activation, $0.link) }
    switch activation {
    case .notActivated: throw WCError(.sessionNotActivated)
    case .inactive: throw WCError(.sessionInactive)
    case .activated: break
    }
    guard delegate != nil else { throw WCError(.sessionMissingDelegate) }
    guard let link else { throw WCError(.sessionNotActivated) }
    return (link, try link.place.checkedCounterpart(link.counterpart))
  }
}

extension SessionPlace {
  /// The phone, or the watch that is active now.
  func counterpart() throws -> String? {
    role == .watch ? Self.phone : try phonePairing.state().activeName
  }

  /// - Throws: `WCError`: `deviceNotPaired`, `watchAppNotInstalled`, `companionAppNotInstalled`.
  func checkedCounterpart(_ name: String?) throws -> String {
    let state = try phonePairing.state()
    guard let watchPairing else {
      guard let name, let watch = state.companions.first(where: { $0.name == name }) else {
        throw WCError(
          .deviceNotPaired, reason: "Pair a watch with the phone: wormhole peer pair NAME.")
      }
      guard watch.isAppInstalled else { throw WCError(.watchAppNotInstalled) }
      return name
    }
    guard state.companions.contains(where: { $0.name == peer.name }) else {
      throw WCError(
        .deviceNotPaired,
        reason: "Pair this watch with the phone: wormhole peer pair \(peer.name).")
    }
    guard try watchPairing.state().active?.isAppInstalled == true else {
      throw WCError(.companionAppNotInstalled)
    }
    return Self.phone
  }
}

extension SessionLink {
  /// Looks; what it finds is told to the delegate, too, if it was told something else last.
  func isReachable() throws -> Bool {
    guard let counterpart, try isCounterpartExpected() else { return false }
    return accepts(try place.peer.reachability(of: counterpart))
  }

  /// The same of what was found already.
  func isReachable(_ reachability: PeerReachability?) -> Bool {
    guard let reachability, accepts(reachability) else { return false }
    do {
      return try isCounterpartExpected()
    } catch {
      Diagnostics.report(error)
      return false
    }
  }

  /// Whether the pairing lets both talk.
  private func isCounterpartExpected() throws -> Bool {
    let pairing = try place.phonePairing.state()
    if place.role == .watch {
      return try pairing.activeName == place.peer.name
        && place.watchPairing?.state().active?.isAppInstalled == true
    }
    return pairing.activeName == counterpart && pairing.active?.isAppInstalled == true
  }

  private func accepts(_ reachability: PeerReachability) -> Bool {
    switch reachability {
    case .reachable: true
    case .launchable: place.role == .watch
    case .suspended, .gone, .neverSeen: false
    }
  }
}
