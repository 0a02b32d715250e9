/// What the screen shows of an event.
enum Echo: Equatable, Sendable {
  case success(String)
  case failure(String)
  case notice(String)

  var text: String {
    switch self {
    case .success(let text), .failure(let text), .notice(let text): text
    }
  }
}

/// Something that happened on this side: a line for the log, and words for the people at the screen.
struct Event: Sendable {
  enum Words: Sendable {
    /// What the screen shows anyway, or what concerns nobody.
    case none
    case echo(Echo)
    /// Stays until the way is free.
    case obstacle(String)
    case wayIsFree
  }

  /// Nil if the log has it already.
  let line: String?
  let words: Words

  private init(_ line: String?, _ words: Words = .none) {
    self.line = line
    self.words = words
  }

  private init(_ line: String?, _ echo: Echo) { self.init(line, .echo(echo)) }

  /// The name of the other side, as the subject of a sentence.
  private static var other: String { Cinema.isPhone ? "The watch" : "The phone" }

  static func failure(_ error: any Error) -> Event {
    Event("\(error)", .failure("\(error)".asSentence))
  }

  // MARK: The session

  static var active: Event { Event("session is active", .wayIsFree) }
  static var inactive: Event {
    Event("session is inactive", .notice("The phone changes to another watch."))
  }
  static var deactivated: Event { Event("session is deactivated") }

  static func noSession(_ reason: String) -> Event {
    Event("no session: \(reason)", .obstacle("No session: \(reason)"))
  }

  static func obstacle(_ sentence: String) -> Event {
    Event(sentence, .obstacle(sentence.asSentence))
  }
  static var wayIsFree: Event { Event(nil, .wayIsFree) }

  static func phoneCannotBeStarted(_ reason: String) -> Event {
    Event(
      "the watch cannot start the phone: \(reason)",
      .notice("The watch cannot start the phone: \(reason)"))
  }

  // MARK: Tickets

  /// A content that names the bought films came. The tickets themselves show what changed.
  static func told(_ way: String, _ films: [Int]) -> Event { Event("\(way) says \(films)") }

  static func changedByAnother(_ who: String, bought: [Movie], givenBack: [Movie]) -> Event? {
    let parts = [("bought", bought), ("gave back", givenBack)].compactMap { verb, films in
      films.isEmpty
        ? nil : "\(verb) \(films.count == 1 ? films[0].quoted : "\(films.count) tickets")"
    }
    guard !parts.isEmpty else { return nil }
    return Event(nil, .success("\(who) \(parts.joined(separator: " and "))."))
  }

  static func notTold(_ reason: String) -> Event {
    Event(
      "not told: \(reason)",
      .notice("\(other) does not answer now. It sees the tickets when it runs again."))
  }

  static func verified(_ isVerified: Bool) -> Event {
    let name = other.lowercased()
    return isVerified
      ? Event("\(name) has verified it")
      : Event("\(name) sees other tickets", .failure("\(other) sees other tickets."))
  }

  static func noAnswer(_ reason: String) -> Event {
    Event(
      "the phone did not answer: \(reason)",
      .notice("The phone does not answer now. The QR codes come when it does."))
  }

  // MARK: QR codes

  static func sendsCode(_ id: Int) -> Event { Event("sends the QR code of \(id)") }
  static func receivedCode(_ id: Int) -> Event { Event("received the QR code of \(id)") }

  static func noCode(_ movie: Movie, _ reason: String) -> Event {
    Event(
      "no QR code for \(movie.id): \(reason)", .failure("No QR code for \(movie.quoted): \(reason)")
    )
  }

  static func notTransferred(_ reason: String) -> Event {
    Event(
      "not transferred: \(reason)", .failure("A QR code did not reach the watch: \(reason)"))
  }

  static func notSaved(_ id: Int, _ reason: String) -> Event {
    Event(
      "the QR code of \(id) was not saved: \(reason)",
      .failure("A QR code was not saved: \(reason)"))
  }

  static func notRemoved(_ reason: String) -> Event {
    Event(
      "a QR code was not removed: \(reason)", .failure("A QR code was not removed: \(reason)"))
  }

  // MARK: Data

  static func dataSays(_ text: String) -> Event {
    Event("data says \(text)", .notice("\(other) says: \(text)"))
  }

  static func dataAsks(_ text: String) -> Event {
    Event("data asks \(text)", .notice("\(other) asks: \(text)"))
  }

  static func dataReplies(_ text: String) -> Event {
    Event(
      "\(other.lowercased()) replies with data \(text)", .notice("\(other) replies: \(text)"))
  }

  // MARK: Films that are open on the other side

  /// The screen shows the invitation as long as it stands.
  static func invited(_ invitation: String) -> Event { Event(invitation) }

  static func closed(_ title: String, _ side: String) -> Event {
    Event("'\(title)' is not open on \(side) any more")
  }

  static func opens(_ movie: Movie, _ side: String) -> Event {
    Event(
      "opens \(movie.title), continued from \(side)", .success("Continued from the \(side)."))
  }

  static func unknownFilm(_ title: String) -> Event {
    let sentence = "this version cannot open '\(title)'"
    return Event(sentence, .failure(sentence.asSentence))
  }

  static func notContinued(_ error: any Error) -> Event {
    Event("not continued: \(error)", .failure("Not continued: \(error)"))
  }
}

extension String {
  /// The text with a capital at its beginning.
  fileprivate var asSentence: String { prefix(1).uppercased() + dropFirst() }
}

extension Movie {
  /// The title in a sentence.
  var quoted: String { "“\(title)”" }
}
