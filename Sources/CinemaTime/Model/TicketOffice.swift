import AppGroup
import Foundation
import PropertyLists

/// Which tickets are bought, on both sides.
///
/// The original keeps a list on each side and sends whole lists, of which the latest wins; so two
/// purchases at the same moment lose one. Here the numbers of the films are one value of the shared
/// container that both sides change by `update`; what goes over the session only says that there is
/// something new, and asks for QR codes.
@MainActor
final class TicketOffice {
  static let shared = TicketOffice(Cinema.container)

  /// The tickets that are bought, in the order of the catalogue.
  private(set) var purchased: [Movie] = []

  /// Called after the tickets have changed, on whichever side.
  var didChange: () -> Void = {}

  /// How the other side is told.
  var delivery = Cinema.isPhone ? Delivery.guaranteed : .failable

  private let value: Value
  /// What the watch's face was told last.
  private var announcedShow: Movie?
  private var observation: Observation?

  private init(_ container: SharedContainer) {
    value = container.value("purchased")
  }

  /// Reads what is bought, and hears of every change from now on.
  func open() throws {
    observation = try value.observe(startsWithCurrent: false, on: .main) { _ in
      MainActor.assumeIsolated { TicketOffice.shared.refresh() }
    }
    purchased = try read()
    announcedShow = Complication.movie()
  }

  func isPurchased(_ movie: Movie) -> Bool { purchased.contains(movie) }

  /// Buys a ticket.
  ///
  /// - Returns: false if it is bought already, on either side.
  func purchase(_ movie: Movie) throws -> Bool {
    try change { ids in
      guard !ids.contains(movie.id) else { return false }
      ids.append(movie.id)
      return true
    }
  }

  /// Gives tickets back.
  func delete(at offsets: IndexSet) throws {
    for movie in offsets.map({ purchased[$0] }) { _ = try delete(movie) }
  }

  /// Gives a ticket back.
  ///
  /// - Returns: false if there is none.
  func delete(_ movie: Movie) throws -> Bool {
    try change { ids in
      guard let index = ids.firstIndex(of: movie.id) else { return false }
      ids.remove(at: index)
      return true
    }
  }

  /// The films without a ticket, by the time at which they are shown.
  func purchasableMovies() -> [(time: String, movies: [Movie])] {
    let byHour = Dictionary(grouping: Movie.all.filter { !isPurchased($0) }, by: \.hour)
    return byHour.keys.sorted().map { ("\($0):00", byHour[$0] ?? []) }
  }

  /// The next show for which there is a ticket; after the last one of today the first of tomorrow.
  func nextShow(after hour: Int) -> Movie? {
    let byTime = purchased.sorted { $0.hour < $1.hour }
    return byTime.first { $0.hour >= hour } ?? byTime.first
  }

  /// Looks again at what is bought; what another process did is told to nobody, or it would echo.
  func refresh(isOwn: Bool = false) {
    do {
      let now = try read()
      guard now != purchased else { return }
      purchased = now
      QRCode.removeFiles(except: now)
      if !Cinema.isPhone, !isOwn { Installation.askForQrCodes() }
      updateComplication()
      didChange()
    } catch {
      Cinema.log("\(error)")
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

  /// Only numbers go to the other side; from the watch also those whose QR codes it misses.
  private func updateCompanion() {
    Connectivity.shared.send(
      movieIds: purchased.map(\.id), delivery: delivery,
      wantedQrCodes: !Cinema.isPhone ? QRCode.missing(purchased) : nil,
      errorHandler: { error in
        Cinema.log("not told: \(error.localizedDescription)")
        MainActor.assumeIsolated { if !Cinema.isPhone { Installation.askForQrCodes() } }
      })
  }

  /// Tells the watch's face, only when it is to show something else: it has a budget for a day.
  func updateComplication() {
    let next = nextShow(after: Cinema.hour)
    guard Cinema.isPhone, next != announcedShow else { return }
    announcedShow = next
    Connectivity.shared.updateComplication(next)
  }

  private func read() throws -> [Movie] {
    let ids = Self.ids(try value.snapshot().propertyList())
    return Movie.all.filter { ids.contains($0.id) }
  }

  /// Numbers of films that are not in the programme are kept, and shown to nobody.
  private nonisolated static func ids(_ content: PropertyListValue?) -> [Int] {
    (content?.arrayValue ?? []).compactMap { $0.intValue }
  }
}
