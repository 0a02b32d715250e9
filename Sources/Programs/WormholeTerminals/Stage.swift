/// The layout of a demonstration: the actors and their actions in one column, durations in another.
package struct Stage {
  private let hasColour: Bool
  private let print: (String) throws -> Void

  /// 80 columns, with the last one empty because some terminals wrap when it is filled.
  private static let columns = 79
  private static let indent = 3
  private static let actorColumns = 10

  /// - Parameters:
  ///   - hasColour: Whether the palette is `Palette.colours`.
  ///   - print: Prints a line.
  package init(hasColour: Bool, print: @escaping (String) throws -> Void) {
    self.hasColour = hasColour
    self.print = print
  }

  private enum Style: String {
    case bold = "1"
    case faint = "2"
    case green = "32"
    case red = "31"
    case cyan = "36"
  }

  package func title(_ text: String) throws { try show("\n" + styled(text, .bold)) }

  package func act(_ actor: String, _ text: String, took duration: Duration? = nil) throws {
    let name = (actor + " ").padded(to: Self.actorColumns)
    let used = Self.indent + name.count + text.count
    try show("   " + styled(name, .cyan) + text + Self.right(duration, after: used))
  }

  /// Shows why an action matters.
  package func explain(_ text: String) throws {
    let lead = "".padded(to: Self.indent + Self.actorColumns)
    for line in TextWrapping.wrap(text, columns: Self.columns, after: lead).split(separator: "\n") {
      try show(styled(String(line), .faint))
    }
  }

  /// Shows a promise, and whether it held.
  package func check(_ promise: String, _ holds: Bool, took duration: Duration?) throws {
    let mark = holds ? styled("✓", .green) : styled("✗", .red)
    try show("   \(mark) \(promise)\(Self.right(duration, after: 5 + promise.count))")
  }

  package func show(_ line: String) throws { try print(line) }

  private func styled(_ text: String, _ style: Style) -> String {
    hasColour ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
  }

  private static func right(_ duration: Duration?, after used: Int) -> String {
    guard let duration else { return "" }
    let text = " \(fixed(duration / .milliseconds(1), 1)) ms"
    return text.padded(to: columns - used, atRight: true)
  }
}
