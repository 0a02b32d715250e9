import Foundation
import WatchConnectivity

/// The interface without a screen: one command per line, and plain lines as answers.
@MainActor
enum Commands {
  private static var office: TicketOffice { .shared }
  /// The film whose purchase has to be confirmed.
  private static var asked: Movie?

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
    var lines: [String]
    do {
      lines = try answer(verb, words.dropFirst().joined(separator: " "))
    } catch let refusal as Refusal {
      lines = ["error: \(refusal.reason)"]
    } catch {
      lines = ["error: \(error)"]
    }
    // One write, so that an answer is never torn.
    FileHandle.standardOutput.write(Data((lines.joined(separator: "\n") + "\n").utf8))
  }

  private struct Refusal: Error {
    let reason: String
  }

  private static func answer(_ verb: String, _ argument: String) throws -> [String] {
    switch verb {
    case "list":
      let films = Movie.all.filter { !office.isPurchased($0) }
      return films.isEmpty ? ["no films left"] : films.map { "\($0.time) \($0.id) \($0.title)" }
    case "tickets": return tickets()
    case "buy": return [try buy(movie(argument))]
    case "purchase":
      asked = nil
      return [try purchase(movie(argument))]
    case "yes", "no": return [try confirm(verb == "yes")]
    case "delete":
      let movie = try movie(argument)
      return [
        "\(try office.delete(movie) ? "deleted" : "no ticket for") \(movie.id) \(movie.title)"
      ]
    case "show": return show(try movie(argument))
    case "close":
      Handoff.show(nil)
      return ["closed"]
    case "offers":
      return Handoff.offers.isEmpty ? ["nothing to continue"] : Handoff.invitations
    case "continue": return [Handoff.goOn()]
    case "expire": return [try expire(argument)]
    case "delivery":
      office.delivery = try choice(of: "deliveries are", argument)
      return ["delivery \(argument)"]
    case "activate":
      Connectivity.shared.activatesAgain = try choice(
        of: "the session is activated again when it is one of", argument)
      return ["activates when \(argument)"]
    case "tell", "ask": return [tell(argument, isQuestion: verb == "ask")]
    case "data", "askdata": return [send(data: argument, isQuestion: verb == "askdata")]
    case "state": return [state()]
    case "echo": return [argument]
    case "quit": exit(0)
    default: throw Refusal(reason: "there is no '\(verb)'; see cinematime --help")
    }
  }

  private static func movie(_ text: String) throws -> Movie {
    guard let movie = Int(text).flatMap({ Movie.of($0) }) else {
      throw Refusal(reason: "no film has the number '\(text)'; see list")
    }
    return movie
  }

  private static func choice<Choice: RawRepresentable<String> & CaseIterable>(
    of what: String, _ text: String
  ) throws -> Choice {
    guard let choice = Choice(rawValue: text) else {
      let names = Choice.allCases.map(\.rawValue).joined(separator: ", ")
      throw Refusal(reason: "\(what) \(names)")
    }
    return choice
  }

  // MARK: Tickets

  private static func tickets() -> [String] {
    guard !office.purchased.isEmpty else { return ["no tickets"] }
    return office.purchased.map { movie in
      let code = TicketCodes.lines(of: movie) == nil ? "QR code missing" : "QR code"
      return "\(movie.time) \(movie.id) \(movie.title) (\(code))"
    }
  }

  private static func buy(_ movie: Movie) throws -> String {
    "\(try office.purchase(movie) ? "bought" : "already bought") \(movie.id) \(movie.title)"
  }

  /// Asks before it buys, as the screens do. Any other question is the answer no.
  private static func purchase(_ movie: Movie) throws -> String {
    guard !office.isPurchased(movie) else { return "already bought \(movie.id) \(movie.title)" }
    asked = movie
    return "Buy a ticket for \(movie.time)? (yes, no)"
  }

  private static func confirm(_ isYes: Bool) throws -> String {
    guard let movie = asked else {
      throw Refusal(reason: "nothing is to be confirmed; see purchase")
    }
    asked = nil
    return isYes ? try buy(movie) : "not bought \(movie.id) \(movie.title)"
  }

  private static func show(_ movie: Movie) -> [String] {
    Handoff.show(movie)
    var lines = ["\(movie.title)", "\(movie.time), directed by \(movie.director)"]
    if Cinema.isPhone { lines += ["with \(movie.actors.joined(separator: ", "))", movie.synopsis] }
    guard office.isPurchased(movie) else { return lines + ["no ticket"] }
    return lines + (TicketCodes.lines(of: movie) ?? [TicketCodes.placeholder])
  }

  // MARK: The other side

  private static func expire(_ text: String) throws -> String {
    guard let seconds = Double(text), seconds > 0, seconds < 1e6 else {
      throw Refusal(reason: "'\(text)' is no number of seconds")
    }
    Handoff.expiry = .seconds(seconds)
    return "offers for \(text) s"
  }

  /// Sends the tickets, and wishes for QR codes.
  private static func tell(_ codes: String, isQuestion: Bool) -> String {
    let wanted = codes.split(separator: " ").compactMap { Int($0) }
    Connectivity.shared.send(
      movieIds: office.purchased.map(\.id), delivery: .failable,
      wantedQrCodes: wanted.isEmpty ? nil : wanted,
      replyHandler: isQuestion ? Installation.logReply : nil, errorHandler: TicketOffice.notTold)
    return "\(isQuestion ? "asks" : "tells") the \(Cinema.other)"
  }

  private static func send(data text: String, isQuestion: Bool) -> String {
    let reply: @Sendable (Data) -> Void = { data in
      let other = "the \(Cinema.other)"
      let text = String(decoding: data, as: UTF8.self)
      Cinema.log(
        "\(other) replies with data \(text)", .notice("\(other.asSentence) replies: \(text)"))
    }
    Connectivity.shared.send(
      data: Data(text.utf8), replyHandler: isQuestion ? reply : nil,
      errorHandler: TicketOffice.notTold)
    return "sends data \(text)"
  }

  private static func state() -> String {
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
