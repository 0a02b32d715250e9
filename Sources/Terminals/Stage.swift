/// How a demonstration looks: who does what in one column, how long it took in another.
package struct Stage {
  private let hasColour: Bool
  private let print: (String) throws -> Void

  /// 80 columns, the last one empty: some terminals wrap when it is filled.
  private static let columns = 79
  private static let indent = 3
  private static let actorColumns = 10

  /// - Parameters:
  ///   - hasColour: see `Colour.isWanted`.
  ///   - print: prints a line.
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

  /// Begins a step.
  package func title(_ text: String) throws { try show("\n" + styled(text, .bold)) }

  /// What somebody does or gets.
  package func act(_ actor: String, _ text: String, took duration: Duration? = nil) throws {
    let lead = String(repeating: " ", count: Self.indent)
    let name = actor + String(repeating: " ", count: max(1, Self.actorColumns - actor.count))
    var line = lead + styled(name, .cyan) + text
    if let duration {
      let used = Self.indent + name.count + text.count
      line += Self.right(duration.inMilliseconds, after: used)
    }
    try show(line)
  }

  /// Why it matters.
  package func explain(_ text: String) throws {
    let column = Self.indent + Self.actorColumns
    let wrapped = TextWrapping.wrap(
      text, columns: Self.columns, indent: column, firstIndent: column)
    for (index, line) in wrapped.split(separator: "\n").enumerated() {
      let lead = index == 0 ? String(repeating: " ", count: column) : ""
      try show(styled(lead + line, .faint))
    }
  }

  /// What was shown, and whether it held.
  package func check(_ claim: String, _ holds: Bool, took duration: Duration?) throws {
    let mark = holds ? styled("✓", .green) : styled("✗", .red)
    let time = duration.map { Self.right($0.inMilliseconds, after: 5 + claim.count) } ?? ""
    try show("   \(mark) \(claim)\(time)")
  }

  /// A line as it is.
  package func show(_ line: String) throws { try print(line) }

  private func styled(_ text: String, _ style: Style) -> String {
    hasColour ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
  }

  private static func right(_ text: String, after used: Int) -> String {
    String(repeating: " ", count: max(1, columns - used - text.count)) + text
  }
}

extension Duration {
  fileprivate var inMilliseconds: String {
    let tenths = Int((self / .microseconds(100)).rounded())
    return "\(tenths / 10).\(tenths % 10) ms"
  }
}
