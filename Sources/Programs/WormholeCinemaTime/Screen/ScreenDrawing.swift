import WormholeWorkshop

/// A screen: a frame with the side's name, the page, the last event, and the keys.
struct ScreenDrawing {
  /// Draws a state, and notes in it how much of the page is visible.
  static func draw(_ state: inout ScreenState, columns: Int, rows: Int) -> Canvas {
    let wasCut = state.isCut
    let drawing = ScreenDrawing(state, columns: columns, rows: rows)
    state.fit(drawing.extent)
    // Whether the page scrolls decides which keys are named.
    guard state.isCut != wasCut else { return drawing.canvas }
    return ScreenDrawing(state, columns: columns, rows: rows).canvas
  }

  private var canvas: Canvas
  /// How much of the page is visible.
  private var extent = ScreenState.Extent()
  private let state: ScreenState
  private let layout: ScreenLayout
  private let message: [StyledLine]

  private init(_ state: ScreenState, columns: Int, rows: Int) {
    self.state = state
    canvas = Canvas(rows: rows, columns: columns)
    message = Self.message(state, columns: canvas.columns - 2, maximum: canvas.rows / 2)
    layout = ScreenLayout(
      columns: canvas.columns, rows: canvas.rows, isPhone: state.isPhone,
      wanted: state.page == state.pageBelow
        ? state.code.map { ($0.count, $0.first?.count ?? 0) } : nil,
      messageRows: message.count, footer: Footer(state))
    drawPage()
    drawDecoration()
    for (index, line) in message.enumerated() {
      canvas.put(line.text, line.style, row: layout.message.row + index, column: 1)
    }
    for (index, hints) in layout.footer.enumerated() {
      Footer.draw(hints, on: &canvas, row: canvas.rows - layout.footer.count + index)
    }
  }

  /// The reason and the remedy are shown in full, as long as half of the page remains.
  private static func message(_ state: ScreenState, columns: Int, maximum: Int) -> [StyledLine] {
    guard let message = state.message ?? state.visibleObstacle.map({ Message.failure($0) }) else {
      return [StyledLine("")]
    }
    let (text, style) =
      switch message {
      case .success(let text): ("✓ \(text)", Look.good)
      case .failure(let text): ("✗ \(text)", Look.bad)
      case .notice(let text): ("• \(text)", Look.notice)
      }
    let lines = StyledLine.wrapped(text, style, columns: columns)
    return Array(lines.prefix(max(1, maximum)))
  }

  // MARK: Decoration

  private mutating func drawDecoration() {
    let style = Look.frame(isPhone: state.isPhone)
    switch layout.decoration {
    case .bar: canvas.fill(layout.frame, Look.bar(isPhone: state.isPhone), with: " ")
    case .framed, .strapped: canvas.frame(layout.frame, style)
    }
    if layout.decoration == .strapped { drawStrap() }
    if !state.isPhone, layout.decoration != .bar {
      // The crown.
      let column = layout.frame.column + layout.frame.columns
      for row in 3...4 {
        canvas.put("▌", style, row: layout.frame.row + row, column: column)
      }
    }
    drawHead()
    drawFoot()
    drawScrollBar()
  }

  private mutating func drawStrap() {
    let width = layout.frame.columns / 2
    let column = layout.frame.column + (layout.frame.columns - width) / 2
    for row in [layout.frame.row - 1, layout.frame.row + layout.frame.rows] {
      canvas.put(String(repeating: "▒", count: width), Look.strap, row: row, column: column)
    }
  }

  /// Which side this is, and whether the other one runs.
  private mutating func drawHead() {
    let isBar = layout.decoration == .bar
    let other = state.isPhone ? "watch" : "phone"
    let mark = state.isOtherReachable ? "●" : "○"
    let full = "\(mark) \(other) \(state.isOtherReachable ? "in reach" : "away")"
    let area = isBar ? layout.frame : layout.frame.inset(rows: 0, columns: 2)
    let room = area.columns - 2
    let forms = [
      ("CinemaTime · \(state.name)", full), (state.name, full), (state.name, "\(mark) \(other)"),
    ]
    let form = forms.first { $0.0.terminalColumns + 3 + $0.1.count <= room } ?? (state.name, mark)
    let bar = Look.bar(isPhone: state.isPhone)
    let nameRoom = max(0, room - form.1.count - 1)
    canvas.put(
      " \(form.0.cut(to: nameRoom)) ", isBar ? bar : Look.name(isPhone: state.isPhone),
      row: area.row, column: area.column)
    canvas.put(
      " \(form.1) ", isBar ? bar : state.isOtherReachable ? Look.good : Look.faint, row: area.row,
      column: area.column + max(0, area.columns - form.1.count - 2))
  }

  /// What can be gone on with, in the lower border.
  private mutating func drawFoot() {
    guard layout.decoration != .bar, let invitation = state.invitation else { return }
    let area = layout.frame.inset(rows: 0, columns: 2)
    let row = area.row + area.rows - 1
    canvas.put(" c ", Look.key, row: row, column: area.column)
    let short = "continue “\(invitation.title)” "
    let full = short + "from the \(invitation.side) "
    canvas.put(
      full.terminalColumns <= area.columns - 3 ? full : short, Look.notice, row: row,
      column: area.column + 3, room: area.columns - 3)
  }

  /// A bar at the right edge, if the page is longer than its area.
  private mutating func drawScrollBar() {
    guard extent.limit > 0, extent.total > 0, layout.content.rows > 2 else { return }
    let column = layout.frame.column + layout.frame.columns - 1
    let rows = layout.content.rows
    let length = max(1, rows * extent.shown / extent.total)
    let first = (rows - length) * firstLine / extent.limit
    for row in first..<(first + length) {
      canvas.put(
        "█", Look.frame(isPhone: state.isPhone), row: layout.content.row + row, column: column)
    }
  }

  // MARK: The page

  /// The first line that is visible.
  private var firstLine: Int {
    guard state.page == state.listPage else { return min(state.scroll, extent.limit) }
    return max(0, min(state.selection - extent.shown / 2, extent.limit))
  }

  private mutating func drawPage() {
    var area = layout.content
    // The last column is the scroll bar's.
    if layout.decoration == .bar { area.columns -= 1 }
    if case .confirmation(let movie) = state.page {
      area = Confirmation(movie).draw(on: &canvas, area)
    }
    switch state.page == .help ? .help : state.pageBelow {
    case .face: WatchFace(state).draw(on: &canvas, area)
    case .films, .tickets: drawList(area)
    case .film(let movie): drawFilm(FilmPage(state, movie), area)
    case .help, .confirmation:
      let text = area.inset(rows: 0, columns: 1)
      drawText(KeyHelp.lines(state, columns: text.columns), text)
    }
  }

  private mutating func drawList(_ area: Canvas.Area) {
    let list = FilmList(state)
    list.drawTabs(on: &canvas, area)
    let area = Canvas.Area(
      row: area.row + 1, column: area.column, rows: area.rows - 1, columns: area.columns)
    extent = ScreenState.Extent(shown: area.rows, total: state.list.count)
    let isMoved = state.page == state.listPage
    let first = isMoved ? firstLine : max(0, min(state.selection - area.rows / 2, extent.limit))
    list.draw(on: &canvas, area, from: first)
    // Under a question, the list does not scroll.
    if !isMoved { extent = ScreenState.Extent() }
  }

  private mutating func drawFilm(_ page: FilmPage, _ area: Canvas.Area) {
    var text = area.inset(rows: 0, columns: 1)
    if let code = page.code {
      guard let rest = code.draw(on: &canvas, layout.content) else {
        return drawText(page.lines(columns: text.columns, hasCode: false), text)
      }
      text = rest
    }
    drawText(page.lines(columns: text.columns, hasCode: page.code != nil), text)
  }

  private mutating func drawText(_ lines: [StyledLine], _ area: Canvas.Area) {
    // Beside a code that takes all the room there is no text.
    guard area.rows > 0 else { return }
    extent = ScreenState.Extent(shown: area.rows, total: lines.count)
    for (index, line) in lines.dropFirst(firstLine).prefix(area.rows).enumerated() {
      canvas.put(
        line.text, line.style, row: area.row + index, column: area.column, room: area.columns)
    }
  }
}
