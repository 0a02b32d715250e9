import Terminals

/// A screen as lines of text: a title, the view, the last event, and the keys.
struct ScreenDrawing {
  private let state: ScreenState
  private let columns: Int
  /// The number of lines for the view.
  private let rows: Int
  private let hasColour: Bool
  private let message: [String]

  /// A watch is narrow, however wide the terminal is.
  private static let watchColumns = 40
  private static let phoneColumns = 100
  /// The title, the message and the keys.
  private static let frameRows = 3

  init(_ state: ScreenState, columns: Int, rows: Int, hasColour: Bool) {
    self.state = state
    self.hasColour = hasColour
    let columns = min(max(columns, 10), state.isPhone ? Self.phoneColumns : Self.watchColumns)
    let rows = max(rows, Self.frameRows + 1) - Self.frameRows
    // The reason and the remedy are shown in full; half of the view remains.
    let lines = Self.lines(of: state.message, columns: columns)
    message = lines.isEmpty ? [""] : Array(lines.prefix(rows / 2 + 1))
    self.columns = columns
    self.rows = rows - (message.count - 1)
  }

  /// The lines, at most as many and as wide as the terminal.
  var lines: [String] {
    let view = view.prefix(rows)
    let empty = Array(repeating: "", count: rows - view.count)
    return [styled(fitted(title), "7")] + view + empty + message.map { styled(fitted($0), "2") }
      + [styled(fitted(keys), "1")]
  }

  /// Words that are wider than the screen, mostly paths, continue on the next line.
  private static func lines(of message: String, columns: Int) -> [String] {
    TextWrapping.wrap(message, columns: columns, indent: 0).split(separator: "\n").flatMap { line in
      stride(from: 0, to: line.count, by: columns).map {
        String(line.dropFirst($0).prefix(columns))
      }
    }
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

  // MARK: Views

  private var view: [String] {
    switch state.page {
    case .tickets:
      let next = state.isPhone ? nil : state.nextShow
      let face = next.map { [fitted(" Next: \($0.time) \($0.title)")] } ?? []
      return face + list(rows: rows - face.count, placeholder: " No tickets yet.")
    case .films: return list(rows: rows, placeholder: " You have seen them all.")
    case .details(let movie, let isConfirming): return details(movie, isConfirming)
    }
  }

  /// The shown list of films: as many as fit, always including the selected one.
  private func list(rows: Int, placeholder: String) -> [String] {
    guard !state.list.isEmpty else { return ["", fitted(placeholder)] }
    let room = max(1, rows - 1)
    let first = max(0, min(state.selection - room / 2, state.list.count - room))
    return [""]
      + state.list.enumerated().dropFirst(first).prefix(room).map { index, movie in
        let isSelected = index == state.selection
        let director = state.isPhone ? ", \(movie.director)" : ""
        let line = fitted("\(isSelected ? ">" : " ") \(movie.time) \(movie.title)\(director)")
        return isSelected ? styled(line, "1") : line
      }
  }

  /// One film: its details, or the bought ticket, or the question whether to buy it.
  private func details(_ movie: Movie, _ isConfirming: Bool) -> [String] {
    let head = [styled(fitted(" \(movie.title)"), "1"), fitted(" \(movie.time)")]
    if isConfirming { return head + ["", fitted(" Buy a ticket for \(movie.time)?")] }
    if state.isPurchased(movie) {
      // If there is no room for both, the code is more important.
      return head.count + code.count <= rows ? head + code : code
    }
    guard state.isPhone else { return head + [""] + wrapped("by \(movie.director)") }
    let people = "Directed by \(movie.director), with \(movie.actors.joined(separator: ", "))."
    return head + wrapped(people) + [""] + wrapped(movie.synopsis)
  }

  /// The ticket's QR code, or a placeholder until the watch has it.
  private var code: [String] {
    guard let code = state.code else { return ["", fitted(" " + HalfBlocks.placeholder)] }
    let drawn = HalfBlocks.lines(code)
    guard drawn.count <= rows, drawn[0].count <= columns else {
      return ["", " Make the terminal larger", " to see the QR code."].map(fitted)
    }
    // Light on dark, whatever the terminal's own colours are.
    return drawn.map { styled($0, "97;40") }
  }

  private func fitted(_ text: String) -> String { String(text.prefix(columns)) }

  private func styled(_ text: String, _ style: String) -> String {
    hasColour ? "\u{1B}[\(style)m\(text)\u{1B}[0m" : text
  }

  /// Returns a sentence wrapped into lines, one column from the edge.
  private func wrapped(_ text: String) -> [String] {
    (" " + TextWrapping.wrap(text, columns: columns - 1, indent: 1, firstIndent: 1))
      .split(separator: "\n").map(String.init)
  }
}

/// A QR code as text: two rows of modules per line, light on dark as on most terminals.
enum HalfBlocks {
  /// Shown until the watch has a code.
  static let placeholder = "(x) its QR code comes from the phone"

  static func lines(_ rows: [[Bool]]) -> [String] {
    // Two light modules around it are enough for most readers, and fit a watch.
    let margin = 2
    let width = rows.count + 2 * margin
    let isLight = { (row: Int, column: Int) -> Bool in
      let row = row - margin
      let column = column - margin
      guard rows.indices.contains(row), rows.indices.contains(column) else { return true }
      return !rows[row][column]
    }
    return stride(from: 0, to: width, by: 2).map { row in
      String(
        (0..<width).map { column -> Character in
          switch (isLight(row, column), row + 1 < width && isLight(row + 1, column)) {
          case (true, true): "█"
          case (true, false): "▀"
          case (false, true): "▄"
          case (false, false): " "
          }
        })
    }
  }
}
