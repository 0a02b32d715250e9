/// How the demonstration looks: who does what in one column, how long it took in another.
struct DemoStage {
  let environment: CommandEnvironment
  private let hasColour: Bool

  /// 80 columns, the last one empty: some terminals wrap when it is filled.
  private static let columns = 79
  private static let indent = 3
  private static let actorColumns = 10

  init(_ environment: CommandEnvironment) {
    self.environment = environment
    // https://no-color.org: present and not empty, whatever its value.
    hasColour =
      environment.isTerminal && (environment.variable("NO_COLOR") ?? "").isEmpty
      && environment.variable("TERM") != "dumb"
  }

  enum Style: String {
    case bold = "1"
    case faint = "2"
    case green = "32"
    case red = "31"
    case cyan = "36"
  }

  func title(_ text: String) throws { try show("\n" + styled(text, .bold)) }

  /// What somebody does or gets.
  func act(_ actor: String, _ text: String, took duration: Duration? = nil) throws {
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
  func explain(_ text: String) throws {
    let column = Self.indent + Self.actorColumns
    let wrapped = TextWrapping.wrap(
      text, columns: Self.columns, indent: column, firstIndent: column)
    for (index, line) in wrapped.split(separator: "\n").enumerated() {
      let lead = index == 0 ? String(repeating: " ", count: column) : ""
      try show(styled(lead + line, .faint))
    }
  }

  func check(_ claim: String, _ holds: Bool, took duration: Duration?) throws {
    let mark = holds ? styled("✓", .green) : styled("✗", .red)
    let time = duration.map { Self.right($0.inMilliseconds, after: 5 + claim.count) } ?? ""
    try show("   \(mark) \(claim)\(time)")
  }

  func show(_ line: String) throws { try environment.print(line: line) }

  private func styled(_ text: String, _ style: Style) -> String {
    hasColour ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
  }

  private static func right(_ text: String, after used: Int) -> String {
    String(repeating: " ", count: max(1, columns - used - text.count)) + text
  }
}

extension Duration {
  fileprivate var inMilliseconds: String {
    let tenths = Int((seconds * 10_000).rounded())
    return "\(tenths / 10).\(tenths % 10) ms"
  }
}
