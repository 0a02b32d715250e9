import WormholeWorkshop

/// The question whether to buy a ticket, beside what it is about.
struct Confirmation {
  private let movie: Movie

  /// The width from which the question is on the right and not below.
  private static let wideColumns = 64
  private static let boxColumns = 30
  private static let boxRows = 6

  init(_ movie: Movie) {
    self.movie = movie
  }

  private var question: String { "Buy a ticket for \(movie.time)?" }

  /// Draws the question.
  ///
  /// - Returns: The area that remains for the page.
  func draw(on canvas: inout Canvas, _ area: Canvas.Area) -> Canvas.Area {
    var rest = area
    if area.columns >= Self.wideColumns, area.rows >= Self.boxRows {
      rest.columns -= Self.boxColumns + 1
      drawBox(
        on: &canvas,
        Canvas.Area(
          row: area.row + 1, column: rest.column + rest.columns, rows: Self.boxRows,
          columns: Self.boxColumns))
      return rest
    }
    guard area.rows >= 2 * Self.boxRows, area.columns >= Self.boxColumns else {
      return drawLines(on: &canvas, area)
    }
    rest.rows -= Self.boxRows
    drawBox(
      on: &canvas,
      Canvas.Area(
        row: rest.row + rest.rows, column: area.column + (area.columns - Self.boxColumns) / 2,
        rows: Self.boxRows, columns: Self.boxColumns))
    return rest
  }

  private func drawBox(on canvas: inout Canvas, _ box: Canvas.Area) {
    canvas.frame(box, Look.question)
    let text = box.inset(rows: 1, columns: 2)
    canvas.put(question, Look.question, row: text.row, column: text.column, room: text.columns)
    canvas.put(movie.title, Look.title, row: text.row + 1, column: text.column, room: text.columns)
    canvas.put("y", Look.key, row: text.row + 3, column: text.column)
    canvas.put("yes, buy", row: text.row + 3, column: text.column + 2)
    canvas.put("n", Look.key, row: text.row + 3, column: text.column + 13)
    canvas.put("no", row: text.row + 3, column: text.column + 15)
  }

  /// Without room for a box.
  private func drawLines(on canvas: inout Canvas, _ area: Canvas.Area) -> Canvas.Area {
    let lines = StyledLine.wrapped(question, columns: area.columns).prefix(max(1, area.rows - 2))
    var rest = area
    rest.rows = max(0, rest.rows - lines.count)
    let row = rest.row + rest.rows
    canvas.fill(
      Canvas.Area(row: row, column: area.column, rows: lines.count, columns: area.columns),
      Look.selection)
    for (index, line) in lines.enumerated() {
      canvas.put(
        line.text, Look.selection, row: row + index, column: area.column, room: area.columns)
    }
    return rest
  }
}
