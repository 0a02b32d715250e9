import WormholeWorkshop

/// A key and what it does on this page.
struct KeyHint: Equatable {
  let key: String
  let word: String

  init(_ key: String, _ word: String) {
    self.key = key
    self.word = word
  }

  var columns: Int { key.count + 1 + word.count }
}

/// The last lines of the screen: the keys of the page.
struct Footer {
  private let hints: [KeyHint]
  private static let gap = 2
  private static let margin = 1

  /// The keys in the order of their importance.
  init(_ state: ScreenState) {
    let help = KeyHint("?", "help")
    let invitation = state.invitation.map { _ in KeyHint("c", "continue") }
    let rest = [help, invitation].compactMap { $0 }
    let change = Self.change(state)
    hints =
      switch state.page {
      case .face:
        [KeyHint("Enter", "open")] + rest + [KeyHint("t", "tickets"), KeyHint("q", "quit")]
      case .films, .tickets: Self.list(state, change, [help], invitation.map { [$0] } ?? [])
      case .film:
        change + rest + [KeyHint("Esc", "back")] + Self.scrolling(state) + [KeyHint("q", "quit")]
      case .confirmation: [KeyHint("y", "buy"), KeyHint("n", "no"), help]
      case .help: [KeyHint("Esc", "close")] + Self.scrolling(state)
      }
  }

  private static func change(_ state: ScreenState) -> [KeyHint] {
    guard let movie = state.subject else { return [] }
    return [state.isPurchased(movie) ? KeyHint("d", "give back") : KeyHint("b", "buy")]
  }

  private static func scrolling(_ state: ScreenState) -> [KeyHint] {
    state.isCut ? [KeyHint("↑↓", "scroll")] : []
  }

  private static func list(
    _ state: ScreenState, _ change: [KeyHint], _ help: [KeyHint], _ invitation: [KeyHint]
  ) -> [KeyHint] {
    let open = state.list.isEmpty ? [] : [KeyHint("Enter", "open")]
    let choose = state.list.count > 1 ? [KeyHint("↑↓", "choose")] : []
    let isFilms = state.page == .films
    let other = [isFilms ? KeyHint("t", "tickets") : KeyHint("f", "films")]
    let back = state.opened.isEmpty ? [] : [KeyHint("Esc", "back")]
    // Without a film, the other list is the only way.
    let first = state.list.isEmpty ? other + help : open + help + change + other
    return first + invitation + choose + back + [KeyHint("q", "quit")]
  }

  /// Returns the keys in at most a number of lines, as many of them as fit.
  func lines(columns: Int, maximum: Int) -> [[KeyHint]] {
    for count in stride(from: hints.count, to: 1, by: -1) {
      let lines = broken(Array(hints.prefix(count)), columns: columns)
      if lines.count <= maximum { return lines }
    }
    return [Array(hints.prefix(1))]
  }

  private func broken(_ hints: [KeyHint], columns: Int) -> [[KeyHint]] {
    let isGeneral = { (hint: KeyHint) in ["?", "q"].contains(hint.key) }
    var lines: [[KeyHint]] = []
    var room = 0
    for hint in hints.filter({ !isGeneral($0) }) + hints.filter(isGeneral) {
      if lines.isEmpty || room < Self.gap + hint.columns {
        lines.append([hint])
        room = columns - Self.margin - hint.columns
      } else {
        lines[lines.count - 1].append(hint)
        room -= Self.gap + hint.columns
      }
    }
    return lines
  }

  static func draw(_ hints: [KeyHint], on canvas: inout Canvas, row: Int) {
    var column = margin
    for hint in hints {
      canvas.put(hint.key, Look.key, row: row, column: column)
      canvas.put(hint.word, row: row, column: column + hint.key.count + 1)
      column += hint.columns + gap
    }
  }
}
