public import Dispatch
import Synchronization
public import Wormhole
import WormholePropertyLists
import WormholeSystem

// An offer is the content of a presence of its own, so it ends with the process that made it. An
// activity that is handed over is a value, so it waits for a program that is only being started.
extension PeerSession {
  /// Offers an activity to the other peers, until `endOffer`, until another one is offered, until it expires,
  /// until the session is closed, or until this process ends, however it ends. Needs no `activate()`.
  ///
  /// A stopped process keeps its offer: its activity can be continued elsewhere.
  ///
  /// - Returns: the offer, as the others see it.
  /// - Throws: `PeerError`: `unsupportedValue` for an activity of more than 65,536 bytes, or an
  ///   error of the container. The previous offer then remains.
  /// - Complexity: create, lock, write, rename, and a watch on a directory.
  @discardableResult
  public func offer(_ activity: PeerActivity) throws -> PeerOffer {
    let offer = PeerOffer(activity, of: name)
    let new = try betweenPeers("offer \"\(activity.title)\"") {
      try container.own.presence(PeerNames.activity(name)).enter(content: offer.propertyList)
    }
    replaceOffer(with: new)
    guard !offer.expiry.isNever else { return offer }
    let end = DispatchTime.now() + offer.expiry.remaining.dispatchInterval
    Blocking.timers.asyncAfter(deadline: end) { [weak self, weak new] in
      // Removing it calls the file system, and the queue of the timers must not block.
      Blocking.queue().async { [weak self, weak new] in
        guard let new else { return }
        self?.replaceOffer(with: nil, ifIs: new)
      }
    }
    return offer
  }

  /// Ends the offer of this session, if there is one.
  public func endOffer() { replaceOffer(with: nil) }

  private func replaceOffer(
    with new: PresenceRegistration?, ifIs expected: PresenceRegistration? = nil
  ) {
    let old = state.withLock { state -> PresenceRegistration? in
      guard expected == nil || state.offer === expected else { return nil }
      defer { state.offer = new }
      return state.offer
    }
    old?.close()
  }

  /// The current offers of the other peers, by their names.
  ///
  /// - Throws: `PeerError`, an error of the container.
  /// - Complexity: lists the container's names; looks at a presence of each peer with a past offer.
  public func offers() throws -> [PeerOffer] {
    try betweenPeers("look for activities") { try PeerOffer.all(in: container, besides: name) }
  }

  /// Calls a handler with the current offers of the other peers, now and after each change: when an
  /// offer is made, ends, expires, or its process dies.
  ///
  /// - Parameters:
  ///   - queue: where the handler is called, one call at a time.
  ///   - handler: gets all offers.
  /// - Returns: the observation; it ends when it is cancelled or released.
  /// - Throws: `PeerError`, an error of the container.
  /// - Complexity: as `offers()` for each event; nothing polls.
  public func observeOffers(
    on queue: DispatchQueue, _ handler: @escaping @Sendable ([PeerOffer]) -> Void
  ) throws -> ObservationToken {
    try betweenPeers("look for activities") {
      try OfferWatch.observe(in: container, besides: name, on: queue, handler)
    }
  }

  /// Hands an offered activity over to a peer, which continues it; starts that peer if it is not
  /// active and is registered to be started for requests.
  ///
  /// Returns when a handler of the peer has it (`handleActivities`). The offer itself remains. If
  /// two activities are handed over to one peer before it takes the first, it gets the second.
  ///
  /// - Parameters:
  ///   - offer: the activity.
  ///   - peer: the peer that continues it: often the one of this session.
  ///   - deadline: when to give up, including the time to start the peer. By default in 10 seconds.
  /// - Throws: `PeerError`: `unreachable` when the offer has ended, or when the peer is not active
  ///   and is not to be started; `notLaunched`; `timedOut` when no handler of the peer took it in
  ///   time; `cancelled` with the task. Then it is not handed over.
  /// - Complexity: a look for the offer, two changes of a value, and a look at the peer's presence.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func handOver(
    _ offer: PeerOffer, to peer: String, until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try betweenPeers(HandOver.action(offer, peer), peer) {
      try HandOver(offer, to: peer, in: container, until: deadline).run()
    }
  }

  /// Hands an activity over; see the form without `async`. Cancelling the task takes it back.
  public func handOver(
    _ offer: PeerOffer, to peer: String, until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    try await betweenPeers(HandOver.action(offer, peer), peer) {
      let container = container
      try await runSuspending { HandOver(offer, to: peer, in: container, until: deadline) }
    }
  }

  /// Calls a handler with each activity handed over to this peer, including one before this call.
  ///
  /// An activity is taken before the handler is called: if the process ends in between, it is lost,
  /// and its user continues it once more. Of several processes of one name, one gets it.
  ///
  /// - Parameters:
  ///   - queue: where the handler is called, one call at a time if it is serial.
  ///   - handler: gets the activity, and knows which peer offered it.
  /// - Returns: the observation; it ends when it is cancelled or released.
  /// - Throws: `PeerError`, an error of the container.
  public func handleActivities(
    on queue: DispatchQueue, _ handler: @escaping @Sendable (PeerOffer) -> Void
  ) throws -> ObservationToken {
    let action = "go on with what is handed over to \"\(name)\""
    return try betweenPeers(action, name) {
      let value = container.own.value(PeerNames.continuing(name))
      return try value.observe(startsWithCurrent: true, on: Blocking.queue()) { snapshot in
        guard !snapshot.isAbsent else { return }
        do {
          let taken = try value.update { content -> PeerOffer? in
            defer { content = nil }
            return content.flatMap { PeerOffer($0) }
          }
          guard let taken, !taken.expiry.hasPassed else { return }
          queue.async { handler(taken) }
        } catch {
          Diagnostics.report(PeerError(any: error, action))
        }
      }
    }
  }
}

extension PeerOffer {
  static func all(in container: SharedContainer, besides name: String) throws -> [PeerOffer] {
    try container.own.presenceNames()
      .filter { PeerNames.peer(ofActivity: $0).map { $0 != name } ?? false }
      .compactMap { presence in
        // The newest offer of a peer: the one before it is about to end.
        try container.own.presence(presence).members()
          .compactMap { $0.content.flatMap { PeerOffer($0) } }.last { !$0.expiry.hasPassed }
      }
      .sorted { $0.peer.utf8.lexicographicallyPrecedes($1.peer.utf8) }
  }
}
