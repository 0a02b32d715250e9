import WormholeWorkshop

/// One film: its details, or its ticket.
struct FilmPage {
  private let state: ScreenState
  private let movie: Movie
  /// The ticket's picture; nil without a ticket, and until the watch has it.
  let code: TicketCode?

  init(_ state: ScreenState, _ movie: Movie) {
    self.state = state
    self.movie = movie
    let isQuestion = state.page != state.pageBelow
    code = isQuestion ? nil : state.code.map { TicketCode($0, movie) }
  }

  /// - Parameter hasCode: Whether the code is on the screen.
  func lines(columns: Int, hasCode: Bool) -> [StyledLine] {
    var lines = StyledLine.wrapped(movie.title, Look.title, columns: columns)
    lines.append(StyledLine(movie.time, Look.time))
    if state.isPurchased(movie) {
      lines.append(StyledLine("✓ Your ticket", Look.good))
      if !hasCode {
        let missing =
          code == nil ? TicketCodes.placeholder : "Make the terminal larger to see the QR code."
        lines += StyledLine.wrapped(missing, Look.notice, columns: columns)
      }
    }
    lines.append(StyledLine(""))
    guard state.isPhone else {
      return lines + StyledLine.wrapped("by \(movie.director)", columns: columns)
    }
    let people = "Directed by \(movie.director), with \(movie.actors.joined(separator: ", "))."
    return lines + StyledLine.wrapped(people, columns: columns) + [StyledLine("")]
      + StyledLine.wrapped(movie.synopsis, columns: columns)
  }
}

/// The QR code of a ticket.
struct TicketCode {
  private let lines: [String]
  private let movie: Movie

  private static let gap = 2
  /// The narrowest text that is worth a place beside the code.
  private static let textColumns = 24

  init(_ lines: [String], _ movie: Movie) {
    self.lines = lines
    self.movie = movie
  }

  /// Draws the code, with a headline if there is room for one.
  ///
  /// - Returns: The area for the text; empty if there is no room for any. Nil if not even the code fits, so
  ///   that nothing is drawn.
  func draw(on canvas: inout Canvas, _ area: Canvas.Area) -> Canvas.Area? {
    let width = lines.map(\.terminalColumns).max() ?? 0
    guard lines.count <= area.rows, width <= area.columns else { return nil }
    let beside = area.columns - 1 - width - Self.gap - 1
    let isBeside = beside >= Self.textColumns
    let first = isBeside ? area.column + 1 : area.column + (area.columns - width) / 2
    let hasHead = !isBeside && area.rows > lines.count
    if hasHead {
      canvas.put(
        "\(movie.time) \(movie.title)", Look.title, row: area.row, column: first, room: width)
    }
    for (index, line) in lines.enumerated() {
      canvas.put(line, Look.code, row: area.row + (hasHead ? 1 : 0) + index, column: first)
    }
    return Canvas.Area(
      row: area.row, column: first + width + Self.gap, rows: isBeside ? area.rows : 0,
      columns: max(0, beside))
  }
}
