/// A purchase that has to be confirmed, as the screens ask it.
@MainActor
enum Purchase {
  /// The film of the question that is not answered yet.
  private static var asked: Movie?

  /// Asks whether to buy a ticket, or takes the answer.
  ///
  /// - Parameters:
  ///   - verb: "purchase" asks; "yes" buys; "no" does not, and neither does any other question.
  ///   - movie: The film to ask about; nil if there is none of that number.
  ///   - number: The number, as it was typed.
  static func answer(_ verb: String, _ movie: Movie?, _ number: String) throws -> String {
    guard verb == "purchase" else { return try answer(isYes: verb == "yes") }
    asked = nil
    guard let movie else { return Commands.unknown(number) }
    guard !TicketOffice.shared.isPurchased(movie) else {
      return "already bought \(movie.id) \(movie.title)"
    }
    asked = movie
    return "Buy a ticket for \(movie.time)? (yes, no)"
  }

  private static func answer(isYes: Bool) throws -> String {
    guard let movie = asked else { return "error: nothing is to be confirmed; see purchase" }
    asked = nil
    return isYes ? try Commands.buy("\(movie.id)") : "not bought \(movie.id) \(movie.title)"
  }
}
