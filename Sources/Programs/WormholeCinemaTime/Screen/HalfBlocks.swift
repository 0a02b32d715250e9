/// A QR code as text: two rows of modules per line, light on dark as on most terminals.
enum HalfBlocks {
  /// Shown until the watch has a code.
  static let placeholder = "(x) its QR code comes from the phone"

  static func lines(_ rows: [[Bool]]) -> [String] {
    // Two light modules around it are enough for most readers, and fit a watch.
    let margin = 2
    let width = rows.count + 2 * margin
    let isLight = { (row: Int, column: Int) -> Bool in
      let row = row - margin
      let column = column - margin
      guard rows.indices.contains(row), rows.indices.contains(column) else { return true }
      return !rows[row][column]
    }
    return stride(from: 0, to: width, by: 2).map { row in
      String(
        (0..<width).map { column -> Character in
          character(
            upper: isLight(row, column), lower: row + 1 < width && isLight(row + 1, column))
        })
    }
  }

  /// Returns the lines and columns that a symbol takes.
  static func size(_ rows: [[Bool]]) -> ScreenLayout.Room {
    let lines = lines(rows)
    return (lines.count, lines.first?.count ?? 0)
  }

  static func character(upper: Bool, lower: Bool) -> Character {
    switch (upper, lower) {
    case (true, true): "█"
    case (true, false): "▀"
    case (false, true): "▄"
    case (false, false): " "
    }
  }
}
