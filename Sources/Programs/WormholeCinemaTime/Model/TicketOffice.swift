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

  /// The bought tickets, by the time of the show.
  private(set) var purchased: [Movie] = []

  /// Called after the tickets have changed, on either side.
  var didChange: () -> Void = {}

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

  /// Buys a ticket, or gives it back, and announces that to the other side.
  ///
  /// - Returns: False if either side has done it already.
  func change(_ movie: Movie, isBought: Bool) throws -> Bool {
    let hasChanged = try value.update { (content: inout PropertyListValue?) -> Bool in
      var ids = Self.ids(content)
      guard ids.contains(movie.id) != isBought else { return false }
      if isBought { ids.append(movie.id) } else { ids.removeAll { $0 == movie.id } }
      content = .array(ids.map { PropertyListValue($0) })
      return true
    }
    refresh(isOwn: true)
    if hasChanged { updateCompanion() }
    return hasChanged
  }

  /// Reads the bought tickets again. Another process's change is not sent on, because it would
  /// echo.
  func refresh(isOwn: Bool = false) {
    do {
      let (now, publisher) = try read()
      guard now != purchased else { return }
      // The log has the change already, from the one who made it.
      if !isOwn { Cinema.log(nil, Self.message(about: purchased, becoming: now, by: publisher)) }
      purchased = now
      TicketCodes.removeFiles(except: now)
      if !Cinema.isPhone, !isOwn { Installation.askForQrCodes() }
      updateComplication()
      didChange()
    } catch {
      Cinema.log(error)
    }
  }

  /// Announces the tickets to the other side; the watch adds the films whose QR codes it misses.
  private func updateCompanion() {
    guard !Cinema.isPhone else { return Connectivity.shared.transfer(purchased) }
    Connectivity.shared.send(purchased, wantedQrCodes: TicketCodes.missing(purchased)) { error in
      Cinema.log(
        "not told: \(error.localizedDescription)",
        .notice("The phone does not answer now. It sees the tickets when it runs again."))
      Installation.askForQrCodes()
    }
  }

  /// Sends the next show with a ticket to the watch's face, but only if it has changed, because there is a daily
  /// budget. After today's last show it is tomorrow's first one.
  func updateComplication() {
    let next = purchased.first { $0.hour >= Cinema.time.hour } ?? purchased.first
    guard Cinema.isPhone, next != announcedShow else { return }
    announcedShow = next
    Connectivity.shared.updateComplication(next)
  }

  private func read() throws -> (movies: [Movie], publisher: Publisher?) {
    let snapshot = try value.snapshot()
    let ids = Self.ids(try snapshot.propertyList())
    return (Movie.all.filter { ids.contains($0.id) }, snapshot.publisher)
  }

  /// Numbers of films that are not in the programme are kept, but not shown.
  private nonisolated static func ids(_ content: PropertyListValue?) -> [Int] {
    (content?.arrayValue ?? []).compactMap { $0.intValue }
  }

  /// Says who changed the tickets, and how. Any program may: a watch, or a shell.
  nonisolated static func message(
    about before: [Movie], becoming now: [Movie], by publisher: Publisher?
  ) -> Message? {
    let who =
      publisher.map { $0.peer.map { "The \($0)" } ?? "The program “\($0.program)”" }
      ?? "Another program"
    let changes = [
      ("bought", now.filter { !before.contains($0) }),
      ("gave back", before.filter { !now.contains($0) }),
    ].filter { !$0.1.isEmpty }
    let parts = changes.map { verb, films in
      "\(verb) \(films.count == 1 ? films[0].quoted : "\(films.count) tickets")"
    }
    return parts.isEmpty ? nil : .success("\(who) \(parts.joined(separator: " and ")).")
  }
}
