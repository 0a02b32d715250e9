import WormholeTerminals

extension ScreenDrawing {
  mutating func drawPage(_ area: Canvas.Area) {
    var area = area
    if case .confirmation(let movie) = state.page { area = drawQuestion(movie, area) }
    let text = area.inset(rows: 0, columns: 1)
    switch state.page == .help ? .help : state.pageBelow {
    case .face: drawFace(area)
    case .films, .tickets: drawList(area)
    case .film(let movie): drawFilm(movie, area)
    case .help, .confirmation: drawText(state.help(columns: text.columns), text)
    }
  }

  private mutating func drawText(_ text: [StyledLine], _ area: Canvas.Area) {
    // There is no text beside a code that takes all the room.
    guard area.rows > 0 else { return }
    lines = (0, area.rows, text.count)
    lines.first = min(state.scroll, hiddenLines)
    canvas.put(text.dropFirst(lines.first), in: area)
  }

  // MARK: The films or the tickets

  /// Draws the names of both lists, and the current list with a bar on the chosen film.
  private mutating func drawList(_ area: Canvas.Area) {
    var column = area.column + 1
    let count = state.tickets.isEmpty ? "" : " \(state.tickets.count)"
    for (page, name) in [(ScreenState.Page.films, "Films"), (.tickets, "Tickets\(count)")] {
      let isCurrent = page == state.listPage
      canvas.put(
        isCurrent ? "[\(name)]" : " \(name) ", isCurrent ? .key : .faint, row: area.row,
        column: column, room: area.column + area.columns - column)
      column += name.count + 2
    }
    var rest = area
    rest.row += 1
    rest.rows -= 1
    guard !state.list.isEmpty else {
      return drawText(
        StyledLine.wrapped("No tickets yet.\nf shows the films.", columns: rest.columns - 2),
        rest.inset(rows: 0, columns: 1))
    }
    lines = (0, rest.rows, state.list.count)
    lines.first = max(0, min(state.selection - rest.rows / 2, hiddenLines))
    for (row, movie) in state.list.dropFirst(lines.first).prefix(rest.rows).enumerated() {
      let line = Canvas.Area(
        row: rest.row + row, column: rest.column, rows: 1, columns: rest.columns)
      draw(movie, in: line, isSelected: lines.first + row == state.selection)
    }
  }

  private mutating func draw(_ movie: Movie, in line: Canvas.Area, isSelected: Bool) {
    if isSelected { canvas.fill(line, .selection) }
    let isWide = line.columns >= 60
    // In the list of tickets every film has one.
    let hasMark = state.listPage == .films && state.isPurchased(movie)
    let mark = hasMark ? isWide ? "✓ ticket" : "✓" : ""
    // With a blank behind it. Where the lines are short, a title may use the room of a missing mark.
    let markColumn = line.columns - (isWide ? 9 : hasMark ? 2 : 0)
    let room = markColumn - 9
    // A wide screen of a phone has room for the directors.
    let titleRoom = isWide && state.isPhone ? room * 3 / 5 : room + 2
    let parts: [(text: String, style: CellStyle, column: Int, room: Int)] = [
      (isSelected ? ">" : " ", .plain, 0, 1), (movie.time, .time, 2, 5),
      (movie.title, .plain, 8, titleRoom - 2),
      (movie.director, .faint, 8 + titleRoom, room - titleRoom),
      (mark, .good, markColumn, mark.count),
    ]
    for part in parts {
      canvas.put(
        part.text, isSelected ? .selection : part.style, row: line.row,
        column: line.column + part.column, room: part.room)
    }
  }

  // MARK: One film

  /// Draws a film, and the QR code of its ticket beside the text, or instead of it.
  private mutating func drawFilm(_ movie: Movie, _ area: Canvas.Area) {
    var text = area.inset(rows: 0, columns: 1)
    let code = state.visibleCode.flatMap { $0.fits(in: area) ? $0 : nil }
    if let code {
      let width = code.columns
      // The narrowest text that is worth a place.
      let isBeside = text.columns - width - 2 >= 24
      var place = area
      place.column += isBeside ? 1 : (area.columns - width) / 2
      if isBeside {
        text.column += width + 2
        text.columns -= width + 2
      } else {
        text.rows = 0
        if area.rows > code.count {
          canvas.put(
            "\(movie.time) \(movie.title)", .title, row: area.row, column: place.column,
            room: width)
          place.row += 1
        }
      }
      canvas.put(code.map { StyledLine($0, .code) }, in: place)
    }
    drawText(lines(about: movie, columns: text.columns, hasCode: code != nil), text)
  }

  private func lines(about movie: Movie, columns: Int, hasCode: Bool) -> [StyledLine] {
    var lines = StyledLine.wrapped(movie.title, .title, columns: columns)
    lines.append(StyledLine(movie.time, .time))
    if state.isPurchased(movie) {
      lines.append(StyledLine("✓ Your ticket", .good))
      let missing =
        state.visibleCode == nil
        ? TicketCodes.placeholder : "Make the terminal larger to see the QR code."
      if !hasCode { lines += StyledLine.wrapped(missing, .notice, columns: columns) }
    }
    lines.append(StyledLine(""))
    let actors = movie.actors.joined(separator: ", ")
    guard state.isPhone else {
      return lines + StyledLine.wrapped("by \(movie.director)", columns: columns)
        + StyledLine.wrapped("with \(actors)", columns: columns)
    }
    let people = "Directed by \(movie.director), with \(actors)."
    return lines + StyledLine.wrapped(people, columns: columns) + [StyledLine("")]
      + StyledLine.wrapped(movie.synopsis, columns: columns)
  }

  /// Asks whether to buy a ticket, below the page; returns the area that remains for the page.
  private mutating func drawQuestion(_ movie: Movie, _ area: Canvas.Area) -> Canvas.Area {
    let isBox = area.rows >= 10 && area.columns >= 30
    let columns = isBox ? 30 : area.columns
    let question = StyledLine.wrapped(
      "Buy a ticket for \(movie.time)?", .question, columns: columns)
    var rest = area
    rest.rows -= isBox ? 5 : min(question.count, max(1, area.rows - 2))
    let box = Canvas.Area(
      row: rest.row + rest.rows, column: area.column + (area.columns - columns) / 2,
      rows: area.rows - rest.rows, columns: columns)
    guard isBox else {
      canvas.put(question, in: box)
      return rest
    }
    canvas.frame(box, .question)
    canvas.put(question + [StyledLine(movie.title, .title)], in: box.inset(rows: 1, columns: 2))
    put([("y", "yes, buy"), ("n", "no")], row: box.row + 3, column: box.column + 2)
    return rest
  }
}
