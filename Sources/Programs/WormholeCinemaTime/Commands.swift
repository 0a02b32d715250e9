import Foundation
import WatchConnectivity
import WormholeTerminals

/// The interface without a screen: one command per line, and plain lines as answers.
@MainActor
enum Commands {
  private static var office: TicketOffice { .shared }

  static func begin() {
    Thread.detachNewThread {
      while let line = readLine() { DispatchQueue.main.async { run(line) } }
      DispatchQueue.main.async { exit(0) }
    }
  }

  private static func run(_ line: String) {
    let words = line.split(separator: " ").map(String.init)
    guard let verb = words.first else { return }
    var lines: [String]
    do {
      lines = try answer(verb, words.dropFirst().joined(separator: " "))
    } catch {
      lines = ["error: \(error)"]
    }
    // One write, so that an answer is never torn.
    FileHandle.standardOutput.write(Data((lines.joined(separator: "\n") + "\n").utf8))
  }

  private static func answer(_ verb: String, _ argument: String) throws -> [String] {
    switch verb {
    case "list":
      let films = Movie.all.filter { !office.isPurchased($0) }
      return films.isEmpty ? ["no films left"] : films.map(line)
    case "tickets":
      let tickets = office.purchased.map { movie in
        line(movie) + (TicketCodes.lines(of: movie) == nil ? " (QR code missing)" : " (QR code)")
      }
      return tickets.isEmpty ? ["no tickets"] : tickets
    case "buy", "delete":
      let movie = try movie(argument)
      let hasChanged = try office.change(movie, isBought: verb == "buy")
      let (done, notDone) =
        verb == "buy" ? ("bought", "already bought") : ("deleted", "no ticket for")
      return ["\(hasChanged ? done : notDone) \(movie.id) \(movie.title)"]
    case "show": return show(try movie(argument))
    case "state": return [state]
    case "echo": return [argument]
    case "quit": exit(0)
    default: throw Misuse("there is no '\(verb)'; see cinematime --help")
    }
  }

  private static func movie(_ text: String) throws -> Movie {
    guard let movie = Int(text).flatMap({ Movie.of($0) }) else {
      throw Misuse("no film has the number '\(text)'; see list")
    }
    return movie
  }

  private static func line(_ movie: Movie) -> String { "\(movie.time) \(movie.id) \(movie.title)" }

  private static func show(_ movie: Movie) -> [String] {
    var lines = ["\(movie.title)", "\(movie.time), directed by \(movie.director)"]
    if Cinema.isPhone { lines += ["with \(movie.actors.joined(separator: ", "))", movie.synopsis] }
    guard office.isPurchased(movie) else { return lines + ["no ticket"] }
    return lines + (TicketCodes.lines(of: movie) ?? [TicketCodes.placeholder])
  }

  private static var state: String {
    let session = WCSession.default
    let side =
      Cinema.isPhone
      ? "paired \(session.isPaired), app installed \(session.isWatchAppInstalled), "
        + "complication updates left \(session.remainingComplicationUserInfoTransfers)"
      : "app installed \(session.isCompanionAppInstalled), "
        + "complication \(Complication.movie().map { "\($0.time) \($0.title)" } ?? "none")"
    return "activation \(session.activationState), reachable \(session.isReachable), \(side)"
  }
}
