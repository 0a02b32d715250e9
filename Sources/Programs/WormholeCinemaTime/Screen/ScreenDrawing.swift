import WormholeTerminals

/// A screen: a frame with the side's name, the page, the last event, and the keys.
struct ScreenDrawing {
  /// Draws a state, and notes in it how much of the page is visible.
  static func draw(_ state: inout ScreenState, columns: Int, rows: Int) -> Canvas {
    let drawing = ScreenDrawing(state, Canvas(rows: rows, columns: columns))
    state.limit(scroll: drawing.hiddenLines)
    return drawing.canvas
  }

  let state: ScreenState
  var canvas: Canvas
  /// The page's lines: the first visible one, the number of visible ones, and of all.
  var lines = (first: 0, shown: 1, total: 1)
  var hiddenLines: Int { max(0, lines.total - lines.shown) }
  /// The place of the frame, with its border.
  private let frame: Canvas.Area

  private static let phoneColumns = 100
  private static let watchColumns = 40
  /// So that a watch with a strap is not flat, and one on a high terminal does not become a tower.
  private static let watchRows = 16...20

  private init(_ state: ScreenState, _ empty: Canvas) {
    self.state = state
    canvas = empty
    let message = Self.message(state, columns: empty.columns - 2).prefix(max(1, empty.rows / 2))
    let end = empty.rows - message.count - 1
    frame = Self.frame(state, rows: end, columns: empty.columns)
    drawPage(frame.inset(rows: 1, columns: 1))
    drawFrame()
    canvas.put(
      message,
      in: Canvas.Area(row: end, column: 1, rows: message.count, columns: empty.columns - 2))
    drawKeys()
  }

  /// The reason and the remedy are shown in full while half of the page remains.
  private static func message(_ state: ScreenState, columns: Int) -> [StyledLine] {
    let (text, style) =
      switch state.message ?? state.visibleObstacle.map({ .failure($0) }) {
      case .success(let text): ("✓ \(text)", CellStyle.good)
      case .failure(let text): ("✗ \(text)", CellStyle.bad)
      case .notice(let text): ("• \(text)", CellStyle.notice)
      case nil: ("", CellStyle.plain)
      }
    return StyledLine.wrapped(text, style, columns: columns)
  }

  // MARK: Keys

  /// Draws as many keys as fit, the general ones last.
  private mutating func drawKeys() {
    var hints = state.keys
    while hints.count > 1,
      hints.reduce(-1, { $0 + $1.key.count + $1.word.count + 3 }) > canvas.columns
    {
      hints.removeLast()
    }
    let isGeneral = { (hint: KeyHint) in ["?", "q"].contains(hint.key) }
    put(hints.filter { !isGeneral($0) } + hints.filter(isGeneral), row: canvas.rows - 1, column: 1)
  }

  mutating func put(_ hints: [KeyHint], row: Int, column: Int) {
    var column = column
    for (key, word) in hints {
      canvas.put(key, .key, row: row, column: column)
      canvas.put(word, row: row, column: column + key.count + 1)
      column += key.count + word.count + 3
    }
  }

  // MARK: The frame

  /// The place of the frame: a watch is narrow, and has a strap if there is room beside the page.
  private static func frame(_ state: ScreenState, rows: Int, columns: Int) -> Canvas.Area {
    guard !state.isPhone else {
      return Canvas.Area(row: 0, column: 0, rows: rows, columns: min(columns, phoneColumns))
    }
    let needed = max(watchRows.lowerBound, 2 + (state.visibleCode?.count ?? 0))
    let strap = rows >= needed + 2 ? 1 : 0
    let width = min(columns, watchColumns)
    // The last column is the crown's.
    return Canvas.Area(
      row: strap, column: (columns - width) / 2,
      rows: min(rows - 2 * strap, watchRows.upperBound), columns: width - 1)
  }

  private mutating func drawFrame() {
    let style = CellStyle.frame(isPhone: state.isPhone)
    canvas.frame(frame, style)
    if frame.row > 0 {
      let width = frame.columns / 2
      let column = frame.column + (frame.columns - width) / 2
      for row in [frame.row - 1, frame.row + frame.rows] {
        canvas.put(String(repeating: "▒", count: width), .strap, row: row, column: column)
      }
    }
    if !state.isPhone {
      // The crown.
      for row in 3...4 {
        canvas.put("▌", style, row: frame.row + row, column: frame.column + frame.columns)
      }
    }
    drawHead(frame.inset(rows: 0, columns: 2))
    drawScrollBar(frame.inset(rows: 1, columns: 0))
  }

  /// The name of this side, and whether the other one runs.
  private mutating func drawHead(_ area: Canvas.Area) {
    let room = area.columns - 2
    let mark = state.isOtherReachable ? "●" : "○"
    let full = "\(mark) \(state.otherSide) \(state.isOtherReachable ? "in reach" : "away")"
    let forms = [("CinemaTime · \(state.name)", full), (state.name, full), (state.name, mark)]
    let (name, reach) = forms.first { $0.terminalColumns + 3 + $1.count <= room } ?? forms[2]
    canvas.put(
      " \(name.cut(to: room - reach.count - 1)) ", CellStyle.name(isPhone: state.isPhone),
      row: area.row, column: area.column)
    canvas.put(
      " \(reach) ", state.isOtherReachable ? .good : .faint, row: area.row,
      column: area.column + max(0, area.columns - reach.count - 2))
  }

  /// A bar at the right edge, if the page is longer than its area.
  private mutating func drawScrollBar(_ area: Canvas.Area) {
    guard hiddenLines > 0, area.rows > 2 else { return }
    let length = max(1, area.rows * lines.shown / lines.total)
    let first = (area.rows - length) * lines.first / hiddenLines
    let style = CellStyle.frame(isPhone: state.isPhone)
    for row in first..<(first + length) {
      canvas.put("█", style, row: area.row + row, column: area.column + area.columns - 1)
    }
  }
}

extension [String] {
  /// The columns of the widest line.
  var columns: Int { map(\.terminalColumns).max() ?? 0 }

  func fits(in area: Canvas.Area) -> Bool { count <= area.rows && columns <= area.columns }
}
