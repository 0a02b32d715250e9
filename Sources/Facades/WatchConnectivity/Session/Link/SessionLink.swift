import Foundation
import Synchronization
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem

/// One activation of a session: with one counterpart, until the phone has another active watch.
final class SessionLink: Sendable {
  let session: WCSession
  let setup: SessionSetup
  /// The counterpart's peer; nil on a phone without an active watch.
  let counterpart: String?
  /// The transfers that have not ended.
  let userInfoTransfers = Outstanding<WCSessionUserInfoTransfer>()
  let fileTransfers = Outstanding<WCSessionFileTransfer>()
  private let messages: Reception<PeerMessage>
  private let files: Reception<PeerFile>
  private let watching = Mutex(Watching())

  /// The observations of the counterpart's state.
  private struct Watching {
    /// The state at the beginning, with the changes since reported to the delegate, and the answers
    /// to the program.
    var known = CounterpartState()
    /// The last observed reachability of the counterpart.
    var reachability: PeerReachability?
    var observations: [ObservationToken] = []
    /// Started again when there is a delegate for a context that came without one.
    var context: ObservationToken?
    var isContextLeft = false
    var hasEnded = false
  }

  /// Becomes the receiver of the transfers to this side, but does not hand any over yet.
  init(
    _ session: WCSession, _ setup: SessionSetup, until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    self.session = session
    self.setup = setup
    counterpart = try await Blocking.run { try PairingView(setup).counterpart }
    messages = try await Reception(
      session, until: deadline, { try await setup.peer.receiveMessages(until: $0) },
      deliver: { $0.deliver($1) })
    do {
      files = try await Reception(
        session, until: deadline, { try await setup.peer.receiveFiles(until: $0) },
        deliver: { $0.deliver($1) })
    } catch {
      messages.end()
      throw error
    }
    do {
      try await Blocking.run { [self] in
        notePresent()
        try loadOutstanding()
      }
    } catch {
      end()
      throw error
    }
  }

  // MARK: From the session's queue

  /// Begins to hand over waiting and new deliveries.
  func start() {
    setup.peer.offerRequests(on: session.queue) { [session] in session.receive($0) }
    Diagnostics.reporting(
      otherwise: (), to: { Diagnostics.report(WCError($0, of: .activation)) }, observe)
    userInfoTransfers.start(self)
    fileTransfers.start(self)
    messages.start(self)
    files.start(self)
  }

  /// Hands over all received deliveries, and stops receiving.
  func drain() async {
    await messages.drain()
    await files.drain()
  }

  /// Hands over the deliveries that waited for a delegate.
  func receiveAgain() {
    messages.restart()
    files.restart()
    guard watching.withLock({ exchange(&$0.isContextLeft, with: false) }) else { return }
    Diagnostics.reporting(observeContext)
  }

  /// Ends it; deliveries that were not handed over wait for the next link.
  func end() {
    let observations = watching.withLock { watching in
      watching.hasEnded = true
      defer { (watching.observations, watching.context) = ([], nil) }
      return watching.observations + [watching.context].compactMap(\.self)
    }
    for observation in observations { observation.cancel() }
    userInfoTransfers.end()
    fileTransfers.end()
    messages.end()
    files.end()
  }

  /// Waits until none of its work is running; `end()` comes first.
  func ended() async {
    await userInfoTransfers.ended()
    await fileTransfers.ended()
  }

  /// Whether a received delivery was not yet handed over.
  func hasContentPending() throws -> Bool {
    try messages.isPending() || files.isPending()
  }

  /// Whether this is the session's current link: on the session's queue, where that changes.
  var isCurrent: Bool { session.link === self && !watching.withLock { $0.hasEnded } }

  /// Whether deliveries from a peer are for the session now. On the phone only paired watches that
  /// are not active have to wait: a shell that sends under any other name takes part.
  func isExpected(from sender: String) -> Bool {
    guard isCurrent else { return false }
    guard setup.role == .phone, !PeerNames.areSame(sender, counterpart) else { return true }
    return Diagnostics.reporting(otherwise: false) {
      try setup.phonePairing.state()[sender] == nil
    }
  }

  /// Whether a peer is the phone's active watch, but not yet this link's counterpart.
  func isAboutToServe(_ peer: String) -> Bool {
    guard setup.role == .phone, !PeerNames.areSame(peer, counterpart) else { return !isCurrent }
    return Diagnostics.reporting(otherwise: false) {
      try PeerNames.areSame(setup.phonePairing.state().activeName, peer)
    }
  }

  // MARK: Changes of the counterpart

  /// Notes the first state, which is reported only when it changes. Called before the activation is
  /// reported, because the program may ask for the state from then on.
  private func notePresent() {
    let reachability = Diagnostics.reporting(otherwise: nil) {
      try counterpart.map { try setup.peer.reachability(of: $0) }
    }
    let found = CounterpartState(self, reachability)
    if found == nil { compareLater() }
    let known = found ?? CounterpartState()
    watching.withLock {
      $0.known = known
      $0.reachability = reachability
    }
  }

  /// Continues an earlier link: reports what has changed since its last report.
  func follow(_ last: SessionLink) {
    let known = last.watching.withLock { $0.known }
    watching.withLock { $0.known = known }
  }

  private func observe() throws {
    var observations: [ObservationToken] = []
    let queue = session.queue
    if let counterpart {
      observations.append(
        try setup.peer.observeReachability(of: counterpart, on: queue) { [weak self] reachability in
          self?.watching.withLock { $0.reachability = reachability }
          self?.compare()
        })
      try observeContext()
    }
    for pairing in [setup.phonePairing, setup.watchPairing].compactMap(\.self) {
      observations.append(try pairing.observe(on: queue) { [weak self] in self?.comparePairing() })
    }
    let hasEnded = watching.withLock { watching in
      if !watching.hasEnded { watching.observations = observations }
      return watching.hasEnded
    }
    if hasEnded { for observation in observations { observation.cancel() } }
    // For changes made before the observers were registered.
    comparePairing()
  }

  private func observeContext() throws {
    guard let counterpart else { return }
    let context = try setup.peer.offerContexts(from: counterpart, on: session.queue) {
      [weak self] in self?.deliver($0) ?? false
    }
    let last = watching.withLock { watching in
      watching.hasEnded ? context : exchange(&watching.context, with: context)
    }
    last?.cancel()
  }

  /// Compares again in a moment, because something could not be read.
  private func compareLater() {
    let queue = session.queue
    Blocking.retry { [weak self] in
      queue.async { [weak self] in self?.comparePairing() }
    }
  }

  private func comparePairing() {
    guard setup.role == .phone else { return compare() }
    let active: String?
    do {
      active = try setup.phonePairing.state().activeName
    } catch {
      Diagnostics.report(error)
      if WormholeError.maySucceedLater(error) { compareLater() }
      return
    }
    guard isCurrent, !PeerNames.areSame(active, counterpart) else { return compare() }
    if counterpart != nil, active != nil {
      session.change(from: self)
    } else {
      session.exchange(self)
    }
  }

  /// Reports the answer to the program's question whether the counterpart is reachable, if it
  /// differs from the known state: the program may have asked for another reason.
  func answered(isReachable: Bool) {
    let isNews = watching.withLock { watching in
      defer { watching.known.isReachable = isReachable }
      return watching.known.isReachable != isReachable
    }
    guard isNews else { return }
    session.queue.async { [self] in
      guard isCurrent else { return }
      session.notifyObservers()
      session.notify { [session] in $0.sessionReachabilityDidChange(session) }
    }
  }

  /// Reports to the delegate everything that differs from what the program knows.
  func compare() {
    guard isCurrent else { return }
    guard let now = CounterpartState(self, watching.withLock { $0.reachability }) else {
      return compareLater()
    }
    let before = watching.withLock { watching in
      defer { watching.known = now }
      return watching.known
    }
    let session = session
    session.notifyObservers()
    if now.watch != before.watch { session.notify { $0.sessionWatchStateDidChange(session) } }
    if now.isCompanionAppInstalled != before.isCompanionAppInstalled {
      session.notify { $0.sessionCompanionAppInstalledDidChange(session) }
    }
    if now.isReachable != before.isReachable {
      session.notify { $0.sessionReachabilityDidChange(session) }
    }
  }
}

// Hands everything that arrives to the delegate; all of it on the session's queue.
extension SessionLink {
  func deliver(_ message: PeerMessage) -> HandOver {
    guard isExpected(from: message.sender) else { return .leftForAnotherWatch }
    let session = session
    return outcome(
      Payload.objects(message.value).map { userInfo in
        session.offer { $0.session(session, didReceiveUserInfo: userInfo) }
      }, "session(_:didReceiveUserInfo:)")
  }

  func deliver(_ file: PeerFile) -> HandOver {
    guard isExpected(from: file.sender) else { return .leftForAnotherWatch }
    let session = session
    let inbox = Inbox(setup)
    defer { inbox.remove(file) }
    do {
      let received = WCSessionFile(try inbox.put(file), .value(file.metadata))
      return outcome(
        session.offer { $0.session(session, didReceive: received) }, "session(_:didReceive:)")
    } catch {
      if ContainerDirectory.mayLinkLater(after: error) { return .delayed(error) }
      Diagnostics.report(error)
      return .ended(failure: "\(error)")
    }
  }

  /// - Parameter offer: nil for a value that no session would send.
  private func outcome(_ offer: WCSession.Offer?, _ method: String) -> HandOver {
    switch offer {
    case .handled: .ended(failure: nil)
    case .declined: .ended(failure: "the delegate does not implement \(method)")
    case .noDelegate: .leftForDelegate
    case nil: .ended(failure: "a session takes dictionaries only")
    }
  }

  /// - Returns: whether it was handed over; otherwise the next observation gets it again.
  private func deliver(_ context: Result<PropertyListValue, WormholeError>) -> Bool {
    let session = session
    guard isCurrent else { return false }
    switch context {
    case .success(let value):
      guard let objects = Payload.objects(value) else { return true }
      let offer = session.offer { $0.session(session, didReceiveApplicationContext: objects) }
      if offer == .noDelegate { watching.withLock { $0.isContextLeft = true } }
      return offer != .noDelegate
    case .failure(let error):
      Diagnostics.report(error)
      return true
    }
  }
}
