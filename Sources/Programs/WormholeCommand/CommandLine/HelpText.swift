import WormholeTerminals

/// The help of one command, in the layout of swift-argument-parser.
///
/// Source: apple/swift-argument-parser, Sources/ArgumentParser/Usage/HelpGenerator.swift (labels
/// indented by 2, explanations from column 26, on their own line if the label is too long).
struct HelpText {
  private static let labelColumn = 26
  /// The column on a terminal that is too narrow for two columns of text.
  private static let narrowLabelColumn = 6
  private static let narrow = 60
  private static let maximumListedOptions = 12

  let path: [CommandDescription]
  let columns: Int

  private var command: CommandDescription { path[path.count - 1] }

  /// The command line that prints this help: `wormhole help notify post`.
  var helpInvocation: String {
    ([path[0].name, "help"] + path.dropFirst().map(\.name)).joined(separator: " ")
  }

  var rendered: String {
    var text = TextWrapping.wrap("OVERVIEW: \(command.abstract)", columns: columns, indent: 0)
    if !command.discussion.isEmpty {
      text += "\n\n" + TextWrapping.wrap(command.discussion, columns: columns, indent: 0)
    }
    text += "\n\nUSAGE: \(usage(indent: 7))\n"
    text += section("ARGUMENTS", command.operands.map { ("<\($0.name)>", $0.help) })
    text += section("OPTIONS", CommandDescription.shownOptions(at: path).map(element))
    let examples = CommandExamples.lines(of: path)
    text += section("EXAMPLES", examples.map { ($0, "") })
    text += section("SUBCOMMANDS", command.shownSubcommands.map { ($0.name, $0.abstract) })
    if !command.subcommands.isEmpty {
      let hint = "See '\(helpInvocation) <subcommand>' for detailed help."
      text += "\n" + TextWrapping.wrap(hint, columns: columns, after: "  ") + "\n"
    }
    return text
  }

  /// The help that is printed unless the whole one is wanted: at most 30 lines of 80 columns. A line
  /// explains each argument, and the manual has the rest.
  var short: String {
    if !command.summary.isEmpty { return command.summary + "\n" }
    var text = TextWrapping.wrap("OVERVIEW: \(command.abstract)", columns: columns, indent: 0)
    text += "\n\nUSAGE: \(usage(indent: 7, listing: 4, command.shownOptions))\n"
    text += section("ARGUMENTS", command.operands.map { ("<\($0.name)>", short($0.help)) })
    text += section(
      "OPTIONS", command.shownOptions.map { (element($0).label, short($0.explanation)) })
    let examples = CommandExamples.lines(of: path).filter { $0.count + 2 <= columns }
    text += section("EXAMPLES", examples.prefix(2).map { ($0, "") })
    text += section(
      "SUBCOMMANDS", command.shownSubcommands.map { ($0.name, short($0.abstract)) })
    let page = ([path[0].name] + path.dropFirst().prefix(1).map(\.name)).joined(separator: "-")
    let hint = "More: '\(helpInvocation) --all', or 'man \(page)'."
    return text + "\n" + TextWrapping.wrap(hint, columns: columns, after: "") + "\n"
  }

  /// The longest beginning of an explanation that ends where a clause does and fits into a line.
  private func short(_ text: String) -> String {
    let room = columns - Self.labelColumn
    if text.count <= room { return text }
    for marks in [["; ", ": ", ". ", " ("], [", "]] {
      let ends = marks.flatMap { text.ranges(of: $0).map(\.lowerBound) }
      let parts = ends.map { text[..<$0] }.filter { $0.count < room }
      guard let part = parts.max(by: { $0.count < $1.count }) else { continue }
      return part.last == "." ? String(part) : part + "."
    }
    return text
  }

  /// The synopsis; lines after the first are indented by `indent`, the width of the text before it.
  ///
  /// - Parameter most: The number of options above which they are not listed.
  func usage(
    indent: Int, listing most: Int = maximumListedOptions, _ options: [ArgumentDescription]? = nil
  ) -> String {
    let listed =
      options ?? command.shownOptions + CommandDescription.globalOptions(at: path)
    var parts = [path.map(\.name).joined(separator: " ")]
    let isShort = listed.count > most
    if isShort { parts.append("[<options>]") }
    parts += listed.compactMap {
      $0.isRequired ? $0.spelling : isShort ? nil : "[\($0.spelling)]"
    }
    parts += command.operands.map(\.synopsis)
    if !command.subcommands.isEmpty { parts.append("<subcommand>") }
    // No line break within a part: its spaces do not count as word boundaries.
    let unbroken = parts.map { $0.replacing(" ", with: "\u{A0}") }.joined(separator: " ")
    return TextWrapping.wrap(unbroken, columns: columns, indent: indent, firstIndent: indent)
      .replacing("\u{A0}", with: " ")
  }

  private func element(_ option: ArgumentDescription) -> (label: String, text: String) {
    (option.letter.map { "-\($0), \(option.spelling)" } ?? option.spelling, option.explanation)
  }

  private func section(_ title: String, _ elements: [(label: String, text: String)]) -> String {
    guard !elements.isEmpty else { return "" }
    return "\n\(title):\n" + elements.map(line).joined()
  }

  private func line(label: String, text: String) -> String {
    let column = columns < Self.narrow ? Self.narrowLabelColumn : Self.labelColumn
    let label = "  " + label
    if text.isEmpty { return label + "\n" }
    // A label that reaches the column would touch its explanation.
    let (above, lead) = label.count < column ? ("", label) : (label + "\n", "")
    return above + TextWrapping.wrap(text, columns: columns, after: lead.padded(to: column)) + "\n"
  }
}

extension ArgumentDescription {
  /// The help, with the allowed values and the default.
  var explanation: String {
    var notes: [String] = []
    if let choices = kind?.choices, !choices.isEmpty {
      notes.append("values: " + choices.joined(separator: ", "))
    }
    if let standard { notes.append("default: \(standard)") }
    return help + (notes.isEmpty ? "" : " (\(notes.joined(separator: "; ")))")
  }
}

/// A command line that does not fit the description: exit status 64, with the usage line.
struct UsageError: Error {
  let reason: String
  /// The command that was reached, with those that lead to it; never empty.
  let path: [CommandDescription]
  /// Set for a bare `wormhole`, which prints the whole help and not only its usage line.
  var wantsWholeHelp = false

  /// The text for standard error, with its final line break.
  func message(columns: Int) -> String {
    let help = HelpText(path: path, columns: columns)
    // Not wrapped: the reason quotes what the user typed.
    let first = "\(path[0].name): \(reason)"
    if wantsWholeHelp { return first + "\n\n" + help.short }
    return """
      \(first)
      Usage: \(help.usage(indent: 7))
        See '\(help.helpInvocation)' for more information.

      """
  }
}
