import Testing
import WormholeTerminals

@testable import WormholeCinemaTime

/// Screens that people see, each reached by the keys that a user types.
enum ScreenScene: String, CaseIterable {
  case first, films, tickets, noTickets, film, confirmation, ticket, help, obstacle
  case face, emptyFace, watchFilms, watchTicket, missingCode

  struct Size: CustomTestStringConvertible {
    let columns: Int
    let rows: Int

    var testDescription: String { "\(columns)x\(rows)" }
  }

  /// A usual terminal, half of one, and hardly any.
  static let sizes = [
    Size(columns: 80, rows: 24), Size(columns: 40, rows: 20), Size(columns: 20, rows: 8),
  ]

  static let africaScreams = Movie.of(23523)
  static let general = Movie.of(34340)

  /// With two tickets, for the third and the fifth film, where there are any; at 14:42.
  private func state(isPhone: Bool) -> ScreenState {
    var state = ScreenState(isPhone: isPhone)
    state.isOtherReachable = true
    state.time = TimeOfDay(hour: 14, minute: 42)
    let tickets = [Self.africaScreams, Self.general].compactMap { $0 }
    let hasTickets = ![.first, .noTickets, .emptyFace].contains(self)
    state.update(
      tickets: hasTickets ? tickets : [])
    if !isPhone, hasTickets { state.nextShow = Self.africaScreams }
    return state
  }

  var isPhone: Bool {
    ![.face, .emptyFace, .watchFilms, .watchTicket, .missingCode].contains(self)
  }

  private var keys: String {
    switch self {
    case .first, .face, .emptyFace: ""
    case .films: "jjj"
    case .tickets, .noTickets: "t"
    case .film: "jjj\r"
    case .confirmation: "jjj\rb"
    case .ticket: "jj\r"
    case .help: "?"
    case .obstacle: "t"
    case .watchFilms: "\rjjjjjjjj"
    case .watchTicket, .missingCode: "t\r"
    }
  }

  func state(_ size: Size) -> ScreenState {
    var state = state(isPhone: isPhone)
    // The screen is drawn after each key, which notes how much of a page is visible.
    _ = ScreenDrawing.draw(&state, columns: size.columns, rows: size.rows)
    _ = state.press(keys)
    switch self {
    case .ticket: state.message = .success("Bought “Africa Screams” at 15:00.")
    case .obstacle:
      state.isOtherReachable = false
      state.obstacle =
        "No watch is paired: wormhole --group group.cinematime peer pairing NAME"
    default: break
    }
    if [.ticket, .watchTicket].contains(self) {
      state.code = Self.africaScreams.flatMap { QRCode($0.ticket)?.lines }
    }
    return state
  }

  func lines(_ size: Size, _ palette: Palette = .characters) -> [String] {
    var state = state(size)
    return ScreenDrawing.draw(&state, columns: size.columns, rows: size.rows).lines(in: palette)
  }
}

extension ScreenState {
  /// Presses keys as a terminal sends them.
  mutating func press(_ keys: String) -> [Action] {
    var reader = KeyReader()
    let complete = reader.keys(in: Array(keys.utf8))
    return (complete + reader.finish()).compactMap { handle($0) }
  }
}
