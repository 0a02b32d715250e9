/// The characters that a terminal shows after the output of our screens: it moves to the beginning, ends lines,
/// erases their rest, and clears the screen.
struct EmulatedTerminal {
  private(set) var lines: [[Character]]
  private let columns: Int
  private var row = 0
  private var column = 0
  /// The beginning of a sequence whose end has not come yet.
  private var unfinished = ""
  /// The looks that were asked for.
  private(set) var looks: Set<String> = []

  init(columns: Int, rows: Int) {
    self.columns = columns
    lines = Array(repeating: Array(repeating: " ", count: columns), count: rows)
  }

  /// The lines without the blanks at their ends.
  var text: [String] {
    lines.map { String($0.reversed().drop { $0 == " " }.reversed()) }
  }

  mutating func take(_ output: String) {
    // Line by line as the terminal does: a carriage return and a line feed are one character in Swift.
    for scalar in output.unicodeScalars {
      if !unfinished.isEmpty || scalar == "\u{1B}" {
        unfinished.unicodeScalars.append(scalar)
        if unfinished.count > 2, (0x40...0x7E).contains(scalar.value) { endSequence() }
      } else {
        show(scalar)
      }
    }
  }

  private mutating func show(_ scalar: Unicode.Scalar) {
    switch scalar {
    case "\r": column = 0
    case "\n": row = min(row + 1, lines.count - 1)
    default:
      // What exceeds a line would break the screen of a real terminal, too.
      if column < columns { lines[row][column] = Character(scalar) }
      column += 1
    }
  }

  private mutating func endSequence() {
    let sequence = unfinished.dropFirst(2)
    unfinished = ""
    switch sequence {
    case "H": (row, column) = (0, 0)
    case "K":
      // In the last column the cursor stands on the last character.
      for place in min(column, columns - 1)..<columns { lines[row][place] = " " }
    case "?1049h": lines = lines.map { $0.map { _ in " " } }
    default: if sequence.hasSuffix("m") { looks.insert(String(sequence.dropLast())) }
    }
  }
}
