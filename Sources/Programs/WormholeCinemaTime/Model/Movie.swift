import Foundation
import Wormhole
import WormholePropertyLists

/// A film of the programme; both sides know the same films.
struct Movie: Codable, Identifiable, Sendable {
  let id: Int
  let title: String
  let synopsis: String
  let director: String
  let actors: [String]
  let poster: String
  let hour: Int

  /// The time of the show: "15:00".
  var time: String { "\(hour):00" }

  /// The text of the ticket's QR code.
  var ticket: String { "\(title) @ \(time)" }
}

extension Movie: Hashable {
  static func == (first: Movie, second: Movie) -> Bool { first.id == second.id }

  func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

extension Movie {
  /// The programme of the day, in the order of the catalogue (Fixtures/movies.json).
  static let all: [Movie] = {
    do {
      return try JSONDecoder().decode([Movie].self, from: Data(PackageResources.movies_json))
    } catch {
      preconditionFailure("the catalogue is part of the program, and a test reads it: \(error)")
    }
  }()

  /// Returns films by the time of the show.
  static func byTime(_ movies: [Movie]) -> [(time: String, movies: [Movie])] {
    let byHour = Dictionary(grouping: movies, by: \.hour)
    return byHour.keys.sorted().map { ("\($0):00", byHour[$0] ?? []) }
  }

  /// Returns the film with a number, or nil if it is not in the programme.
  static func of(_ id: Int) -> Movie? { all.first { $0.id == id } }
}

/// The content of the watch's face: the next show with a ticket, according to the phone's last
/// message.
enum Complication {
  private static var value: Value { Cinema.container.value("complication") }

  static func save(_ id: Int?) {
    do {
      try value.replace(with: id.map { PropertyListValue($0) } ?? "none")
    } catch {
      Cinema.log(.failure(error))
    }
  }

  /// Returns the film on the watch's face, or nil if there is none.
  static func movie() -> Movie? {
    do {
      return try value.snapshot().propertyList()?.intValue.flatMap { Movie.of($0) }
    } catch {
      Cinema.log(.failure(error))
      return nil
    }
  }
}
