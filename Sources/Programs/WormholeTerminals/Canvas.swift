/// The characters of a whole screen, which are drawn in any order and then written at once.
///
/// Drawing outside is cut off, so no line is ever wider than the screen.
package struct Canvas: Sendable {
  package struct Area: Equatable, Sendable {
    package var row: Int
    package var column: Int
    /// Never negative.
    package var rows: Int { didSet { rows = max(0, rows) } }
    /// Never negative.
    package var columns: Int { didSet { columns = max(0, columns) } }

    package init(row: Int, column: Int, rows: Int, columns: Int) {
      self.row = row
      self.column = column
      self.rows = max(0, rows)
      self.columns = max(0, columns)
    }

    /// Returns the area without a margin on each side.
    package func inset(rows: Int, columns: Int) -> Area {
      Area(
        row: row + rows, column: column + columns, rows: self.rows - 2 * rows,
        columns: self.columns - 2 * columns)
    }
  }

  private struct Cell {
    /// Nil for the second column of a wide character.
    var character: Character?
    var style: CellStyle
  }

  package let rows: Int
  package let columns: Int
  private var cells: [Cell]

  package init(rows: Int, columns: Int) {
    self.rows = max(1, rows)
    self.columns = max(1, columns)
    cells = Array(
      repeating: Cell(character: " ", style: .plain), count: self.rows * self.columns)
  }

  // MARK: Drawing

  /// Draws a text in one line.
  ///
  /// - Parameter room: The columns that it may take; a longer text ends with "…".
  package mutating func put(
    _ text: String, _ style: CellStyle = .plain, row: Int, column: Int, room: Int = .max
  ) {
    guard (0..<rows).contains(row), column >= 0, column < columns else { return }
    let end = column + min(room, columns - column)
    var column = column
    for character in text.cut(to: end - column) {
      let width = character.terminalColumns
      guard column + width <= end else { return }
      cells[row * columns + column] = Cell(character: character.printable, style: style)
      if width == 2 { cells[row * columns + column + 1] = Cell(character: nil, style: style) }
      column += width
    }
  }

  /// Gives all cells of an area a style, and a character if one is named.
  package mutating func fill(_ area: Area, _ style: CellStyle, with character: Character? = nil) {
    for row in max(0, area.row)..<max(0, min(rows, area.row + area.rows)) {
      for column in max(0, area.column)..<max(0, min(columns, area.column + area.columns)) {
        cells[row * columns + column].style = style
        if let character { cells[row * columns + column].character = character }
      }
    }
  }

  /// Draws the border of an area, with round corners.
  package mutating func frame(_ area: Area, _ style: CellStyle) {
    guard area.rows >= 2, area.columns >= 2 else { return }
    let side = String(repeating: "─", count: area.columns - 2)
    let last = area.row + area.rows - 1
    put("╭\(side)╮", style, row: area.row, column: area.column)
    for row in (area.row + 1)..<last {
      put("│", style, row: row, column: area.column)
      put("│", style, row: row, column: area.column + area.columns - 1)
    }
    put("╰\(side)╯", style, row: last, column: area.column)
  }

  // MARK: Reading

  /// Returns the lines, without the blanks at their ends.
  package func lines(in palette: Palette) -> [String] {
    (0..<rows).map { text(of: $0, in: palette) }
  }

  /// Returns the text that shows the canvas on a terminal of its size, whatever that shows before.
  package func output(in palette: Palette) -> String {
    let lines = (0..<rows).map { row in
      // In the last column the cursor stays on its character, which an erasure would remove.
      text(of: row, in: palette) + (used(row) < columns ? "\u{1B}[K" : "")
    }
    // No line end after the last line, because the screen would scroll.
    return "\u{1B}[H" + lines.joined(separator: "\r\n")
  }

  /// The number of columns before the blanks at the end of a line.
  private func used(_ row: Int) -> Int {
    let line = cells[(row * columns)..<((row + 1) * columns)]
    let last = line.lastIndex { $0.character != " " || $0.style != .plain }
    return last.map { $0 - line.startIndex + 1 } ?? 0
  }

  private func text(of row: Int, in palette: Palette) -> String {
    var text = ""
    var current = ""
    for cell in cells[(row * columns)..<(row * columns + used(row))] {
      let wanted = cell.style.rendition(in: palette)
      if wanted != current {
        if !current.isEmpty { text += "\u{1B}[0m" }
        if !wanted.isEmpty { text += "\u{1B}[\(wanted)m" }
        current = wanted
      }
      if let character = cell.character { text.append(character) }
    }
    if !current.isEmpty { return text + "\u{1B}[0m" }
    // A style that this palette does not have may have left blanks.
    return text.withoutBlanksAtEnd
  }
}

extension String {
  /// Returns the text in at most a number of columns, with "…" instead of the rest.
  package func cut(to columns: Int) -> String {
    guard terminalColumns > columns else { return self }
    guard columns > 0 else { return "" }
    var room = columns - 1
    return prefix { character in
      room -= character.terminalColumns
      return room >= 0
    } + "…"
  }

  /// The columns that the text takes on a terminal.
  package var terminalColumns: Int { reduce(0) { $0 + $1.terminalColumns } }
}

extension Character {
  /// Two for the characters of East Asia and for pictures, one for all others.
  fileprivate var terminalColumns: Int {
    guard let value = unicodeScalars.first?.value, value >= 0x1100 else { return 1 }
    let wide: [ClosedRange<UInt32>] = [
      0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
      0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD,
    ]
    return wide.contains { $0.contains(value) } ? 2 : 1
  }

  /// The character, or a blank instead of one that would control the terminal.
  fileprivate var printable: Character {
    let isControl = unicodeScalars.contains { $0.properties.generalCategory == .control }
    return isControl ? " " : self
  }
}
