import Wormhole
import WormholePropertyLists
import WormholeSystem

/// One hand-over of an activity to a peer: writes it, has the peer started, and waits until the peer has taken it.
///
/// Meanwhile it is a value `peer/continuing/<peer>`, which the peer removes to take the activity.
/// An early end takes the activity back, so none is continued after its caller got an error.
final class HandOver: Waiting {
  private let offer: PeerOffer
  private let peer: String
  private let container: SharedContainer
  private let deadline: ContinuousClock.Instant
  private let latch = WakeLatch()
  private var observation: ObservationToken?
  private var isWritten = false

  init(
    _ offer: PeerOffer, to peer: String, in container: SharedContainer,
    until deadline: ContinuousClock.Instant?
  ) {
    self.offer = offer
    self.peer = peer
    self.container = container
    self.deadline = deadline ?? .now + Question.standardWait
  }

  deinit {
    guard isWritten else { return }
    do {
      _ = try takeBack()
    } catch {
      // It expires, or the peer continues it after all: its caller has an error or was cancelled.
      Diagnostics.report(error)
    }
  }

  static func action(_ offer: PeerOffer, _ peer: String) -> String {
    "hand \"\(offer.title)\" over to \"\(peer)\""
  }

  private var value: Value { container.own.value(PeerNames.continuing(peer)) }

  func step() throws -> WaitingStep<Void> {
    if !isWritten { try begin() }
    guard try isWaiting() else { return done }
    guard ContinuousClock.now < deadline else {
      // The peer may have taken it just now.
      guard try takeBack() else { return done }
      isWritten = false
      throw failure(
        .timedOut,
        "no handler took it in time: \(try PeerReachability.of(peer, in: container).reason)")
    }
    return .wait(for: latch, until: deadline)
  }

  private var done: WaitingStep<Void> {
    isWritten = false
    return .done(())
  }

  private func begin() throws {
    try PeerNames.check(peer)
    let offers = try PeerOffer.all(in: container, besides: "")
    guard offers.contains(offer) else {
      throw failure(.unreachable, "\"\(offer.peer)\" does not offer it any more")
    }
    try value.replace(with: offer.propertyList, until: deadline)
    isWritten = true
    // After the writing: if it was taken before an observer looked, nothing would have changed.
    let latch = latch
    observation = try value.observe(on: Blocking.queue()) { _ in latch.raise() }
    guard try !PeerReachability.of(peer, in: container).isActive else { return }
    guard try Launcher.launch(peer, for: .request, in: container, until: deadline) else {
      throw failure(
        .unreachable, try PeerReachability.of(peer, in: container).reason)
    }
  }

  private func isWaiting() throws -> Bool {
    try value.read().flatMap { PeerOffer($0) } == offer
  }

  /// - Returns: whether it was still there.
  private func takeBack() throws -> Bool {
    let offer = offer
    return try value.update { content in
      guard content.flatMap({ PeerOffer($0) }) == offer else { return false }
      content = nil
      return true
    }
  }

  private func failure(_ code: PeerError.Code, _ reason: String) -> PeerError {
    PeerError(code, Self.action(offer, peer), peer: peer, reason: reason)
  }
}
