import Foundation
import Wormhole

/// A film on the program; both sides know the same films.
struct Movie: Codable, Hashable, Sendable {
  let id: Int
  let title: String
  let synopsis: String
  let director: String
  let actors: [String]
  let hour: Int

  var time: String { "\(hour):00" }

  /// The text of the ticket's QR code.
  var ticket: String { "\(title) @ \(time)" }

  var quoted: String { "“\(title)”" }

  /// The day's program, by the time of the show (Fixtures/movies.json).
  static let all: [Movie] = {
    do {
      let movies = try JSONDecoder().decode([Movie].self, from: Data(PackageResources.movies_json))
      return movies.sorted { $0.hour < $1.hour }
    } catch {
      preconditionFailure("the catalogue is part of the program, and a test reads it: \(error)")
    }
  }()

  static func of(_ id: Int) -> Movie? { all.first { $0.id == id } }
}

/// The content of the watch's face: the next show with a ticket, according to the phone's last
/// message.
enum Complication {
  private static var value: Value<Int> { Cinema.container.value("complication", as: Int.self) }

  /// - Parameter id: Nil if there is no ticket.
  static func save(_ id: Int?) {
    do {
      try value.update { $0 = id }
    } catch {
      Cinema.log(error)
    }
  }

  static func movie() -> Movie? {
    do {
      return try value.read().flatMap { Movie.of($0) }
    } catch {
      Cinema.log(error)
      return nil
    }
  }
}
