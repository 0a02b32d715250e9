import Terminals

/// The context of a view: its width and height, its side, and colours.
struct ViewContext {
  let isPhone: Bool
  let columns: Int
  /// The number of lines for the view.
  let rows: Int
  let hasColour: Bool

  func fitted(_ text: String) -> String { String(text.prefix(columns)) }

  func styled(_ text: String, _ style: String) -> String {
    hasColour ? "\u{1B}[\(style)m\(text)\u{1B}[0m" : text
  }

  /// Returns a sentence wrapped into lines, one column from the edge.
  func wrapped(_ text: String) -> [String] {
    TextWrapping.wrap(text, columns: columns - 1, indent: 1, firstIndent: 1)
      .split(separator: "\n").enumerated()
      .map { $0.offset == 0 ? " \($0.element)" : "\($0.element)" }
  }
}
