/// Columns as wide as their content; the first is shortened where it would take half the line.
struct TextTable {
  private let lines: [[String]]

  init(_ head: [String], _ rows: [[String]], columns: Int) {
    let limit = max(16, columns / 2)
    lines =
      rows.isEmpty
      ? []
      : ([head] + rows).map { row in
        row.enumerated().map { $0 == 0 ? Self.shortened($1, to: limit) : Self.visible($1) }
      }
  }

  /// Empty without rows.
  var rendered: String {
    guard let head = lines.first else { return "" }
    let widths = head.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    let text = lines.map { line in
      let cells = zip(line, widths).map { cell, width in
        cell + String(repeating: " ", count: width - cell.count)
      }
      return String(cells.joined(separator: "  ").reversed().drop { $0 == " " }.reversed())
    }
    return text.joined(separator: "\n") + "\n"
  }

  private static func shortened(_ text: String, to limit: Int) -> String {
    let visible = visible(text)
    return visible.count <= limit ? visible : visible.prefix(limit - 1) + "…"
  }

  private static func visible(_ text: String) -> String {
    text.withoutControlCharacters.split(separator: "\n", omittingEmptySubsequences: false)
      .joined(separator: "\\n")
  }
}
