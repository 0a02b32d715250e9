import WormholeWorkshop

/// The watch's face: the time, and the next show as a complication.
struct WatchFace {
  private let state: ScreenState

  /// A complication with a border, and its distance from the clock.
  private static let boxRows = 4
  private static let boxColumns = 28
  private static let gap = 1

  init(_ state: ScreenState) {
    self.state = state
  }

  func draw(on canvas: inout Canvas, _ area: Canvas.Area) {
    let text = complication
    let isLarge = area.rows >= 12 && area.columns >= ClockDigits.largeColumns
    let isBox = area.rows >= 9 && area.columns >= Self.boxColumns
    let clock =
      isLarge ? ClockDigits.large(state.time.text) : ClockDigits.small(state.time.text)
    let fits = clock.count < area.rows && (clock.first?.count ?? 0) <= area.columns
    let digits = fits ? clock : [state.time.text]
    let rest = isBox ? Self.gap + Self.boxRows : text.count
    var row = area.row + max(0, area.rows - digits.count - rest) / 2
    for line in digits {
      put(StyledLine(line, Look.title), on: &canvas, area, row: row)
      row += 1
    }
    guard isBox else {
      for line in text.prefix(max(0, area.rows - digits.count)) {
        put(line, on: &canvas, area, row: row)
        row += 1
      }
      return
    }
    let box = Canvas.Area(
      row: row + Self.gap, column: area.column + (area.columns - Self.boxColumns) / 2,
      rows: Self.boxRows, columns: Self.boxColumns)
    canvas.frame(box, Look.faint)
    for (index, line) in text.enumerated() {
      put(line, on: &canvas, box.inset(rows: 1, columns: 2), row: box.row + 1 + index)
    }
  }

  /// Draws a line in the middle of an area.
  private func put(_ line: StyledLine, on canvas: inout Canvas, _ area: Canvas.Area, row: Int) {
    let column = area.column + max(0, area.columns - line.text.terminalColumns) / 2
    canvas.put(line.text, line.style, row: row, column: column, room: area.columns)
  }

  /// The next show, and when it begins.
  private var complication: [StyledLine] {
    guard let next = state.nextShow else {
      return [StyledLine("No tickets yet"), StyledLine("Enter: the films", Look.faint)]
    }
    return [
      StyledLine(next.title, Look.title),
      StyledLine("\(next.time), \(state.time.wait(untilHour: next.hour))", Look.time),
    ]
  }
}

/// The digits of a clock, of blocks.
enum ClockDigits {
  /// The width of four large digits and a colon.
  static let largeColumns = 34

  /// Five rows of three dots each; the colon has one column.
  private static let dots: [Character: [String]] = [
    "0": ["###", "# #", "# #", "# #", "###"],
    "1": [" # ", "## ", " # ", " # ", "###"],
    "2": ["###", "  #", "###", "#  ", "###"],
    "3": ["###", "  #", "###", "  #", "###"],
    "4": ["# #", "# #", "###", "  #", "  #"],
    "5": ["###", "#  ", "###", "  #", "###"],
    "6": ["###", "#  ", "###", "# #", "###"],
    "7": ["###", "  #", "  #", "  #", "  #"],
    "8": ["###", "# #", "###", "# #", "###"],
    "9": ["###", "# #", "###", "  #", "###"],
    ":": [" ", "#", " ", "#", " "],
  ]

  /// The dots of a time, row by row.
  private static func rows(_ time: String) -> [[Bool]] {
    (0..<5).map { row in
      time.compactMap { dots[$0]?[row] }.joined(separator: " ").map { $0 == "#" }
    }
  }

  /// Two characters for each dot, so that it is a square.
  static func large(_ time: String) -> [String] {
    rows(time).map { row in row.map { $0 ? "██" : "  " }.joined() }
  }

  /// Two dots, one above the other, for each character.
  static func small(_ time: String) -> [String] { HalfBlocks.lines(rows(time)) }
}
