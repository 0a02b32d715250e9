import Foundation
import Wormhole

/// The bought tickets, on both sides.
///
/// The original keeps a list on each side and sends whole lists, of which the latest wins, so one
/// of two simultaneous purchases is lost. Here the numbers of the films are one value of the shared
/// container, and both sides change it with `update`. The session only announces changes and asks
/// for QR codes.
@MainActor
final class TicketOffice {
  static let shared = TicketOffice()

  /// The bought tickets, by the time of the show.
  private(set) var purchased: [Movie] = []

  /// Called after the tickets have changed, on either side.
  var didChange: () -> Void = {}

  private let value = Cinema.container.value("purchased", as: [Int].self)
  /// The show that was last sent to the watch's face.
  private var announcedShow: Movie?
  private var observation: ObservationToken?

  /// Reads the bought tickets and observes every change from now on.
  func open() throws {
    observation = try value.observe(startsWithCurrent: false, on: .main) { _ in
      MainActor.assumeIsolated { TicketOffice.shared.refresh() }
    }
    purchased = try read().movies
    announcedShow = Complication.movie()
  }

  func isPurchased(_ movie: Movie) -> Bool { purchased.contains(movie) }

  /// Buys a ticket, or gives it back, and announces that to the other side; returns false if either
  /// side has already done it.
  func change(_ movie: Movie, isBought: Bool) throws -> Bool {
    let hasChanged = try value.update { content in
      var ids = content ?? []
      guard ids.contains(movie.id) != isBought else { return false }
      if isBought { ids.append(movie.id) } else { ids.removeAll { $0 == movie.id } }
      content = ids
      return true
    }
    refresh(isOwn: true)
    guard hasChanged else { return false }
    Cinema.isPhone ? Connectivity.shared.transfer(purchased) : Connectivity.shared.askForQrCodes()
    return true
  }

  /// Reads the bought tickets again. Another process's change is not sent on, because it would
  /// echo.
  func refresh(isOwn: Bool = false) {
    do {
      let (now, publisher) = try read()
      guard now != purchased else { return }
      // The log already has the change, from the process that made it.
      if !isOwn { Cinema.log(nil, Self.message(about: purchased, becoming: now, by: publisher)) }
      purchased = now
      TicketCodes.removeFiles(except: now)
      if !Cinema.isPhone, !isOwn { Connectivity.shared.askForQrCodes() }
      updateComplication()
      didChange()
    } catch {
      Cinema.log(error)
    }
  }

  /// Sends the next show with a ticket to the watch's face, but only if it has changed, because
  /// there is a daily budget. After today's last show it is tomorrow's first one.
  func updateComplication() {
    let next = purchased.first { $0.hour >= TimeOfDay.now.hour } ?? purchased.first
    guard Cinema.isPhone, next != announcedShow else { return }
    announcedShow = next
    Connectivity.shared.updateComplication(next)
  }

  /// Numbers of films that are not on the program are kept, but not shown.
  private func read() throws -> (movies: [Movie], publisher: Publisher?) {
    let snapshot = try value.snapshot()
    let ids = try snapshot.content ?? []
    return (Movie.all.filter { ids.contains($0.id) }, snapshot.publisher)
  }

  /// Names the process that changed the tickets, a watch or a shell, and the change.
  nonisolated static func message(
    about before: [Movie], becoming now: [Movie], by publisher: Publisher?
  ) -> Message? {
    let who =
      publisher.map { $0.peer.map { "The \($0)" } ?? "The program “\($0.program)”" }
      ?? "Another program"
    let changed = Set(before).symmetricDifference(now)
    guard let movie = changed.first else { return nil }
    guard changed.count == 1 else { return .success("\(who) changed \(changed.count) tickets.") }
    return .success("\(who) \(now.contains(movie) ? "bought" : "gave back") \(movie.quoted).")
  }
}
