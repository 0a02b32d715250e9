import Terminals

/// What every view draws with: how wide and high it may be, which side it is on, and colours.
struct ViewContext {
  let isPhone: Bool
  let columns: Int
  /// How many lines there are for the view.
  let rows: Int
  let hasColour: Bool

  func fitted(_ text: String) -> String { String(text.prefix(columns)) }

  func styled(_ text: String, _ style: String) -> String {
    hasColour ? "\u{1B}[\(style)m\(text)\u{1B}[0m" : text
  }

  /// A sentence in as many lines as it takes, one column from the edge.
  func wrapped(_ text: String) -> [String] {
    TextWrapping.wrap(text, columns: columns - 1, indent: 1, firstIndent: 1)
      .split(separator: "\n").enumerated()
      .map { $0.offset == 0 ? " \($0.element)" : "\($0.element)" }
  }
}
