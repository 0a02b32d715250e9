import WormholeTerminals

extension CellStyle {
  static let title = CellStyle("1", withoutColours: "1")
  static let faint = CellStyle("2")
  static let time = CellStyle("36")
  static let key = CellStyle("1;36", withoutColours: "1")
  static let selection = CellStyle("1;97;44", withoutColours: "7")
  static let good = CellStyle("32", withoutColours: "1")
  static let bad = CellStyle("1;31", withoutColours: "1")
  static let notice = CellStyle("33")
  static let question = CellStyle("1;33", withoutColours: "1")
  static let strap = CellStyle("90")
  /// Black and white, which are the image, not decoration: a terminal with dark letters on white
  /// would invert it, and some readers cannot read that.
  static let code = CellStyle("97;40", withoutColours: "97;40")

  /// The two sides differ in color, because they are often seen side by side.
  static func frame(isPhone: Bool) -> CellStyle { CellStyle(isPhone ? "36" : "35") }

  static func name(isPhone: Bool) -> CellStyle {
    CellStyle(isPhone ? "1;36" : "1;35", withoutColours: "1")
  }
}

struct StyledLine {
  let text: String
  let style: CellStyle

  init(_ text: String, _ style: CellStyle = .plain) {
    self.text = text
    self.style = style
  }

  /// Returns a text in as many lines as it needs. Wider words, mostly paths, take several lines.
  static func wrapped(_ text: String, _ style: CellStyle = .plain, columns: Int) -> [StyledLine] {
    TextWrapping.wrap(text, columns: max(1, columns), indent: 0)
      .split(separator: "\n", omittingEmptySubsequences: false)
      .map { StyledLine(String($0), style) }
  }
}

extension Canvas {
  /// Draws lines from the top of an area, as many as it has rows.
  mutating func put(_ lines: some Sequence<StyledLine>, in area: Area, isCentred: Bool = false) {
    for (row, line) in lines.prefix(area.rows).enumerated() {
      let margin = isCentred ? max(0, area.columns - line.text.terminalColumns) / 2 : 0
      put(
        line.text, line.style, row: area.row + row, column: area.column + margin,
        room: area.columns)
    }
  }
}
