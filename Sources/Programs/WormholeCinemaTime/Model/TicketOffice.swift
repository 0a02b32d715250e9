import Foundation
import Wormhole
import WormholePropertyLists

/// The bought tickets, on both sides.
///
/// The original keeps a list on each side and sends whole lists, of which the latest wins, so one
/// of two simultaneous purchases is lost. Here the numbers of the films are one value of the shared
/// container, and both sides change it with `update`. The session only announces changes and asks
/// for QR codes.
@MainActor
final class TicketOffice {
  static let shared = TicketOffice(Cinema.container)

  /// The bought tickets, in the order of the catalogue.
  private(set) var purchased: [Movie] = []

  /// Called after the tickets have changed, on either side.
  var didChange: () -> Void = {}

  /// The way in which changes are sent to the other side.
  var delivery = Cinema.isPhone ? Delivery.guaranteed : .failable

  private let value: Value
  /// The show that was last sent to the watch's face.
  private var announcedShow: Movie?
  private var observation: ObservationToken?

  private init(_ container: SharedContainer) {
    value = container.value("purchased")
  }

  /// Reads the bought tickets and observes every change from now on.
  func open() throws {
    observation = try value.observe(startsWithCurrent: false, on: .main) { _ in
      MainActor.assumeIsolated { TicketOffice.shared.refresh() }
    }
    purchased = try read().movies
    announcedShow = Complication.movie()
  }

  func isPurchased(_ movie: Movie) -> Bool { purchased.contains(movie) }

  /// Buys a ticket.
  ///
  /// - Returns: False if either side has bought it already.
  func purchase(_ movie: Movie) throws -> Bool {
    try change { ids in
      guard !ids.contains(movie.id) else { return false }
      ids.append(movie.id)
      return true
    }
  }

  /// Gives a ticket back.
  ///
  /// - Returns: False if there is none.
  func delete(_ movie: Movie) throws -> Bool {
    try change { ids in
      guard let index = ids.firstIndex(of: movie.id) else { return false }
      ids.remove(at: index)
      return true
    }
  }

  /// Returns the films without a ticket, by the time of the show.
  func purchasableMovies() -> [(time: String, movies: [Movie])] {
    Movie.byTime(Movie.all.filter { !isPurchased($0) })
  }

  /// Returns the next show with a ticket; after today's last one, tomorrow's first one.
  func nextShow(after hour: Int) -> Movie? {
    let byTime = purchased.sorted { $0.hour < $1.hour }
    return byTime.first { $0.hour >= hour } ?? byTime.first
  }

  /// Reads the bought tickets again. Another process's change is not sent on, because it would
  /// echo.
  func refresh(isOwn: Bool = false) {
    do {
      let (now, publisher) = try read()
      guard now != purchased else { return }
      if !isOwn { announce(now, by: publisher) }
      purchased = now
      TicketCodes.removeFiles(except: now)
      if !Cinema.isPhone, !isOwn { Installation.askForQrCodes() }
      updateComplication()
      didChange()
    } catch {
      Cinema.log(.failure(error))
    }
  }

  private func change(_ body: @escaping @Sendable (inout [Int]) -> Bool) throws -> Bool {
    let hasChanged = try value.update { (content: inout PropertyListValue?) -> Bool in
      var ids = Self.ids(content)
      let hasChanged = body(&ids)
      if hasChanged { content = .array(ids.map { PropertyListValue($0) }) }
      return hasChanged
    }
    refresh(isOwn: true)
    if hasChanged { updateCompanion() }
    return hasChanged
  }

  /// Sends the numbers of films to the other side; the watch adds the films whose QR codes it
  /// misses.
  private func updateCompanion() {
    Connectivity.shared.send(
      movieIds: purchased.map(\.id), delivery: delivery,
      wantedQrCodes: !Cinema.isPhone ? TicketCodes.missing(purchased) : nil,
      errorHandler: { error in
        Cinema.log(.notTold(error.localizedDescription))
        MainActor.assumeIsolated { if !Cinema.isPhone { Installation.askForQrCodes() } }
      })
  }

  /// Sends the next show to the watch's face, but only if it has changed, because there is a daily
  /// budget.
  func updateComplication() {
    let next = nextShow(after: Cinema.time.hour)
    guard Cinema.isPhone, next != announcedShow else { return }
    announcedShow = next
    Connectivity.shared.updateComplication(next)
  }

  private func read() throws -> (movies: [Movie], publisher: Publisher?) {
    let snapshot = try value.snapshot()
    let ids = Self.ids(try snapshot.propertyList())
    return (Movie.all.filter { ids.contains($0.id) }, snapshot.publisher)
  }

  /// Says who changed the tickets, and how. Any program may: a watch, or a shell.
  private func announce(_ now: [Movie], by publisher: Publisher?) {
    let who =
      publisher.map { $0.peer.map { "The \($0)" } ?? "The program “\($0.program)”" }
      ?? "Another program"
    let event = Event.changedByAnother(
      who, bought: now.filter { !purchased.contains($0) },
      givenBack: purchased.filter { !now.contains($0) })
    if let event { Cinema.log(event) }
  }

  /// Numbers of films that are not in the programme are kept, but not shown.
  private nonisolated static func ids(_ content: PropertyListValue?) -> [Int] {
    (content?.arrayValue ?? []).compactMap { $0.intValue }
  }
}
