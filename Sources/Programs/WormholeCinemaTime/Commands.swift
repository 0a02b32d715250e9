import Foundation
import WatchConnectivity

/// The commands of a side, and its answers.
@MainActor
enum Commands {
  private static var office: TicketOffice { .shared }

  private static let verbs =
    "list, tickets, buy, purchase, yes, no, delete, show, delivery, tell, ask, data, askdata, "
    + "activate, close, offers, continue, expire, state, echo, quit"

  /// - Returns: The lines of the answer; nil at the end.
  static func answer(_ verb: String, _ argument: String) throws -> [String]? {
    switch verb {
    case "list": return list()
    case "tickets": return tickets()
    case "buy": return [try buy(argument)]
    case "purchase", "yes", "no": return [try Purchase.answer(verb, movie(argument), argument)]
    case "delete": return [try change(argument, office.delete, "deleted", else: "no ticket for")]
    case "show":
      guard let movie = movie(argument) else { return [unknown(argument)] }
      Handoff.show(movie)
      return show(movie)
    case "close":
      Handoff.show(nil)
      return ["closed"]
    case "offers":
      let lines = Handoff.invitations
      return lines.isEmpty ? ["nothing to continue"] : lines
    case "continue": return [Handoff.goOn()]
    case "expire": return [expire(argument)]
    case "delivery": return [delivery(argument)]
    case "tell", "ask", "data", "askdata": return [Messages.send(verb, argument)]
    case "activate": return [activate(argument)]
    case "state": return state()
    case "echo": return [argument]
    case "quit": return nil
    default:
      return ["error: there is no '\(verb)': \(verbs)"]
    }
  }

  private static func movie(_ text: String) -> Movie? { Int(text).flatMap { Movie.of($0) } }

  static func buy(_ number: String) throws -> String {
    try change(number, office.purchase, "bought", else: "already bought")
  }

  static func unknown(_ text: String) -> String {
    "error: no film has the number '\(text)'; see list"
  }

  private static func list() -> [String] {
    let lines = office.purchasableMovies().flatMap { time, movies in
      movies.map { "\(time) \($0.id) \($0.title)" }
    }
    return lines.isEmpty ? ["no films left"] : lines
  }

  private static func tickets() -> [String] {
    guard !office.purchased.isEmpty else { return ["no tickets"] }
    return office.purchased.map { movie in
      let code = TicketCodes.lines(of: movie) == nil ? "QR code missing" : "QR code"
      return "\(movie.time) \(movie.id) \(movie.title) (\(code))"
    }
  }

  private static func change(
    _ number: String, _ change: (Movie) throws -> Bool, _ done: String, else notDone: String
  ) throws -> String {
    guard let movie = movie(number) else { return unknown(number) }
    return "\(try change(movie) ? done : notDone) \(movie.id) \(movie.title)"
  }

  private static func show(_ movie: Movie) -> [String] {
    var lines = ["\(movie.title)", "\(movie.time), directed by \(movie.director)"]
    if Cinema.isPhone { lines += ["with \(movie.actors.joined(separator: ", "))", movie.synopsis] }
    guard office.isPurchased(movie) else { return lines + ["no ticket"] }
    return lines + (TicketCodes.lines(of: movie) ?? [TicketCodes.placeholder])
  }

  private static func delivery(_ name: String) -> String {
    guard let delivery = Delivery(rawValue: name) else {
      return "error: deliveries are \(Delivery.allCases.map(\.rawValue).joined(separator: ", "))"
    }
    office.delivery = delivery
    return "delivery \(delivery.rawValue)"
  }

  private static func expire(_ text: String) -> String {
    guard let seconds = Double(text), seconds > 0, seconds < 1e6 else {
      return "error: '\(text)' is no number of seconds"
    }
    Handoff.expiry = .seconds(seconds)
    return "offers for \(text) s"
  }

  private static func activate(_ name: String) -> String {
    guard let moment = Connectivity.Activation(rawValue: name) else {
      let names = Connectivity.Activation.allCases.map(\.rawValue).joined(separator: ", ")
      return "error: the session is activated again when it is one of \(names)"
    }
    Connectivity.shared.activatesAgain = moment
    return "activates when \(moment.rawValue)"
  }

  private static func state() -> [String] {
    let session = WCSession.default
    let side =
      Cinema.isPhone
      ? "paired \(session.isPaired), app installed \(session.isWatchAppInstalled), "
        + "complication updates left \(session.remainingComplicationUserInfoTransfers)"
      : "app installed \(session.isCompanionAppInstalled), "
        + "complication \(Complication.movie().map { "\($0.time) \($0.title)" } ?? "none")"
    return ["activation \(session.activationState), reachable \(session.isReachable), \(side)"]
  }
}

/// The interface without a screen: one command per line, and plain lines as answers.
@MainActor
enum CommandLoop {
  static func begin() {
    Thread.detachNewThread {
      while let line = readLine() {
        DispatchQueue.main.async { run(line) }
      }
      DispatchQueue.main.async { exit(0) }
    }
  }

  private static func run(_ line: String) {
    let words = line.split(separator: " ").map(String.init)
    guard let verb = words.first else { return }
    do {
      guard let lines = try Commands.answer(verb, words.dropFirst().joined(separator: " ")) else {
        exit(0)
      }
      // One write, so that an answer is never torn.
      FileHandle.standardOutput.write(Data((lines.joined(separator: "\n") + "\n").utf8))
    } catch {
      FileHandle.standardOutput.write(Data("error: \(error)\n".utf8))
    }
  }
}
