import Terminals

/// A screen as lines of text: the phone's with all it knows of a film, the watch's narrow and short.
struct ScreenDrawing {
  let state: ScreenState
  let columns: Int
  let rows: Int
  let hasColour: Bool

  /// A watch is narrow, however wide the terminal is.
  static let watchColumns = 40

  init(_ state: ScreenState, columns: Int, rows: Int, hasColour: Bool) {
    self.state = state
    self.columns = min(max(columns, 10), state.isPhone ? 100 : Self.watchColumns)
    self.rows = max(rows, 4)
    self.hasColour = hasColour
  }

  /// At most as many lines as the terminal has, none wider than it is.
  var lines: [String] {
    var body = content
    let room = rows - 3
    if body.count > room { body = Array(body.prefix(room)) }
    body += Array(repeating: "", count: room - body.count)
    return [styled(fitted(title), "7")] + body
      + [styled(fitted(state.message), "2"), styled(fitted(keys), "1")]
  }

  private var title: String {
    let side = state.isPhone ? "CinemaTime" : "CinemaTime watch"
    let other = state.isPhone ? "watch" : "phone"
    let status = "\(other) \(state.isOtherReachable ? "in reach" : "away")"
    let gap = max(1, columns - side.count - status.count - 2)
    return " \(side)" + String(repeating: " ", count: gap) + "\(status) "
  }

  private var keys: String {
    let isNarrow = columns < 56
    return switch state.page {
    case .details(_, true): "y buy  any other key: no"
    case .details(let movie, false):
      (state.isPurchased(movie) ? "d give back  " : "b buy  ") + "t tickets  f films  q quit"
    case .tickets where isNarrow: "enter show  d back  f films  q quit"
    case .tickets: "j/k choose  enter show  d give back  f films  q quit"
    case .films where isNarrow: "enter show  b buy  t tickets  q quit"
    case .films: "j/k choose  enter show  b buy  t tickets  q quit"
    }
  }

  private var content: [String] {
    switch state.page {
    case .tickets: face + (state.tickets.isEmpty ? ["", " No tickets yet."] : list(state.tickets))
    case .films: state.films.isEmpty ? ["", " You have seen them all."] : list(state.films)
    case .details(let movie, let isConfirming): details(movie, isConfirming)
    }
  }

  /// The watch's face.
  private var face: [String] {
    guard !state.isPhone, let next = state.nextShow else { return [] }
    return [fitted(" Next: \(next.time) \(next.title)")]
  }

  /// As many films as fit, the chosen one among them.
  private func list(_ movies: [Movie]) -> [String] {
    let room = max(1, rows - 4 - face.count)
    let first = max(0, min(state.selection - room / 2, movies.count - room))
    let shown = movies.enumerated().dropFirst(first).prefix(room)
    return [""]
      + shown.map { index, movie in
        let line = "\(index == state.selection ? ">" : " ") \(movie.time) \(movie.title)"
        let more = state.isPhone ? ", \(movie.director)" : ""
        return index == state.selection ? styled(fitted(line + more), "1") : fitted(line + more)
      }
  }

  private func details(_ movie: Movie, _ isConfirming: Bool) -> [String] {
    let head = [styled(fitted(" \(movie.title)"), "1"), fitted(" \(movie.time)")]
    if isConfirming { return head + ["", fitted(" Buy a ticket for \(movie.time)?")] }
    guard state.isPurchased(movie) else { return head + information(movie) }
    guard let code = state.code else { return head + ["", fitted(" " + HalfBlocks.placeholder)] }
    let drawn = HalfBlocks.lines(code)
    guard drawn.count <= rows - 3, drawn[0].count <= columns else {
      return head + ["", fitted(" Make the terminal larger to see"), fitted(" the QR code.")]
    }
    let picture = drawn.map { styled($0, "97;40") }
    // Where there is room the picture has what is known beside or above it.
    return drawn.count + head.count <= rows - 3 ? head + picture : picture
  }

  private func information(_ movie: Movie) -> [String] {
    guard state.isPhone else { return [""] + wrapped("by \(movie.director)") }
    return wrapped("Directed by \(movie.director), with \(movie.actors.joined(separator: ", ")).")
      + [""] + wrapped(movie.synopsis)
  }

  private func wrapped(_ text: String) -> [String] {
    TextWrapping.wrap(text, columns: columns - 1, indent: 1, firstIndent: 1)
      .split(separator: "\n").enumerated().map {
        $0.offset == 0 ? " \($0.element)" : "\($0.element)"
      }
  }

  private func fitted(_ text: String) -> String { String(text.prefix(columns)) }

  private func styled(_ text: String, _ style: String) -> String {
    hasColour ? "\u{1B}[\(style)m\(text)\u{1B}[0m" : text
  }
}
