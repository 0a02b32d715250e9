import Foundation
import Wormhole
import WormholePeers
import WormholePropertyLists

/// The film that is open on one side, and may be continued on the other.
@MainActor
enum Handoff {
  /// The kind of the activity.
  private nonisolated static let film = "cinematime.film"

  /// Called with a film of the other side that is opened here.
  static var opened: (Movie) -> Void = { _ in }
  /// The offers of the other side.
  private(set) static var offers: [PeerOffer] = []

  private static var peer: PeerSession?
  private static var observations: [ObservationToken] = []
  private static var shown: Movie?

  static func begin() throws {
    let name = Cinema.isPhone ? Pairing.phone : Cinema.watchName
    // The session reports the invalid name, which is more important.
    guard PeerNames.isName(name) else { return }
    let peer = try PeerSession(name, in: Cinema.container)
    self.peer = peer
    observations = [
      try peer.observeOffers(on: .main) { offers in
        MainActor.assumeIsolated { note(offers.filter { $0.type == film }) }
      },
      try peer.handleActivities(on: .main) { offer in MainActor.assumeIsolated { open(offer) } },
    ]
  }

  /// Offers the film that is open now; nil if none is.
  static func show(_ movie: Movie?) {
    guard let peer, movie != shown else { return }
    shown = movie
    do {
      guard let movie else { return peer.endOffer() }
      try peer.offer(
        PeerActivity(
          type: film, title: movie.title, content: ["film": PropertyListValue(movie.id)],
          expiry: .seconds(600)))
    } catch {
      Cinema.log(error)
    }
  }

  // MARK: From the other side

  /// The invitations to continue, for people.
  static var invitations: [String] { offers.map { "Continue '\($0.title)' from \($0.peer)" } }

  /// Continues the other side's film here.
  ///
  /// - Returns: What was done.
  static func goOn() -> String {
    guard let offer = offers.first, let peer else { return "nothing to continue" }
    let name = peer.name
    Task.detached {
      do {
        try await peer.handOver(offer, to: name)
      } catch {
        Cinema.log(failure: "not continued: \(error)")
      }
    }
    return "continues '\(offer.title)' from \(offer.peer)"
  }

  /// A screen shows the invitation as long as it stands.
  private static func note(_ now: [PeerOffer]) {
    let before = offers
    offers = now
    for (offer, invitation) in zip(now, invitations) where !before.contains(offer) {
      Cinema.log(invitation)
    }
    for offer in before where !now.contains(where: { $0.peer == offer.peer }) {
      Cinema.log("'\(offer.title)' is not open on \(offer.peer) any more")
    }
    TicketOffice.shared.didChange()
  }

  private static func open(_ offer: PeerOffer) {
    guard offer.type == film, let movie = offer.content["film"]?.intValue.flatMap({ Movie.of($0) })
    else { return Cinema.log(failure: "this version cannot open '\(offer.title)'") }
    Cinema.log(
      "opens \(movie.title), continued from \(offer.peer)",
      .success("Continued from the \(offer.peer)."))
    opened(movie)
    TicketOffice.shared.didChange()
  }

  // MARK: From outside

  /// Hands the film that is open on a watch over to the phone, as the icon on a locked phone does; the phone is
  /// started if it does not run.
  ///
  /// - Returns: Whether a film was open.
  nonisolated static func handOverToPhone(in container: SharedContainer) throws -> Bool {
    let peer = try PeerSession("lock screen", in: container)
    let offers = try peer.offers().filter { $0.type == film && $0.peer != Pairing.phone }
    guard let offer = offers.first else {
      print("nothing to continue")
      return false
    }
    try peer.handOver(offer, to: Pairing.phone)
    print("the phone continues '\(offer.title)' from \(offer.peer)")
    return true
  }
}
