import WormholeWorkshop

/// The films or the tickets, by time, with a bar on the chosen one.
struct FilmList {
  private let state: ScreenState

  /// The width from which there is room for the directors.
  private static let directorColumns = 60
  private static let timeColumns = 5

  init(_ state: ScreenState) {
    self.state = state
  }

  /// Draws the names of both lists in the first line of an area.
  func drawTabs(on canvas: inout Canvas, _ area: Canvas.Area) {
    var column = area.column + 1
    let count = state.tickets.isEmpty ? "" : " \(state.tickets.count)"
    for (page, name) in [(ScreenState.Page.films, "Films"), (.tickets, "Tickets\(count)")] {
      let isCurrent = page == state.listPage
      canvas.put(
        isCurrent ? "[\(name)]" : " \(name) ", isCurrent ? Look.currentTab : Look.faint,
        row: area.row, column: column, room: area.column + area.columns - column)
      column += name.count + 2
    }
  }

  func draw(on canvas: inout Canvas, _ area: Canvas.Area, from first: Int) {
    guard !state.list.isEmpty else { return drawEmpty(on: &canvas, area) }
    for (index, movie) in state.list.enumerated().dropFirst(first).prefix(area.rows) {
      draw(
        movie, isSelected: index == state.selection, on: &canvas,
        Canvas.Area(
          row: area.row + index - first, column: area.column, rows: 1, columns: area.columns))
    }
  }

  private func draw(
    _ movie: Movie, isSelected: Bool, on canvas: inout Canvas, _ line: Canvas.Area
  ) {
    let style = { (usual: CellStyle) in isSelected ? Look.selection : usual }
    if isSelected { canvas.fill(line, Look.selection) }
    let end = line.column + line.columns
    var column = line.column
    canvas.put(isSelected ? ">" : " ", style(.plain), row: line.row, column: column)
    column += 2
    canvas.put(movie.time, style(Look.time), row: line.row, column: column)
    column += Self.timeColumns + 1
    let isWide = line.columns >= Self.directorColumns
    let mark = mark(of: movie, isWide: isWide)
    // With a blank behind it. Where the lines are short, a title may use the room of a missing mark.
    let markColumns = isWide ? 9 : mark.isEmpty ? 0 : mark.count + 1
    canvas.put(mark, style(Look.good), row: line.row, column: end - markColumns)
    let room = end - markColumns - 1 - column
    guard isWide, state.isPhone else {
      return canvas.put(movie.title, style(.plain), row: line.row, column: column, room: room)
    }
    let titleRoom = room * 3 / 5
    canvas.put(movie.title, style(.plain), row: line.row, column: column, room: titleRoom - 2)
    canvas.put(
      movie.director, style(Look.faint), row: line.row, column: column + titleRoom,
      room: room - titleRoom)
  }

  /// In the list of tickets every film has one.
  private func mark(of movie: Movie, isWide: Bool) -> String {
    guard state.listPage == .films, state.isPurchased(movie) else { return "" }
    return isWide ? "✓ ticket" : "✓"
  }

  private func drawEmpty(on canvas: inout Canvas, _ area: Canvas.Area) {
    let text = area.inset(rows: 0, columns: 1)
    let lines =
      StyledLine.wrapped("No tickets yet.", columns: text.columns)
      + StyledLine.wrapped("f shows the films.", Look.faint, columns: text.columns)
    for (index, line) in lines.prefix(text.rows).enumerated() {
      canvas.put(
        line.text, line.style, row: text.row + index, column: text.column, room: text.columns)
    }
  }
}
