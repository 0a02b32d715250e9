/// The command's manual pages: one for the program, and one for each command with the same
/// sentences as its help.
struct CommandManual {
  let root: CommandDescription

  /// A section's first page, by its number, or a command's page; nil for any other name.
  func page(named name: String) -> String? {
    switch ManualSection(rawValue: name) {
    case .command: page
    case .format:
      ArticleManual(
        name: ProgramName.format, summary: "the files of a container on disk", source: source,
        seeAlso: "\(root.name)(1)",
        markdown: String(decoding: PackageResources.OnDiskFormat_md, as: UTF8.self)
      ).page
    case nil: root.shownSubcommands.first { $0.name == name }.map(page)
    }
  }

  private var page: String {
    var text = title(root.name, root)
    text += Roff.heading("SYNOPSIS")
    text += "\(Roff.bold(root.name)) \(options(root.globalOptions)) \(Roff.italic("command")) ...\n"
    text += Roff.heading("DESCRIPTION")
    let parts = root.discussion.split(separator: "Exit status:\n", maxSplits: 1).map(String.init)
    text += paragraphs(parts[0])
    text += Roff.heading("OPTIONS")
    text += Roff.bold("--group") + " and " + Roff.bold("--container")
    text += " may stand at any place of the line.\n"
    text += CommandDescription.shownOptions(at: [root]).map(item).joined()
    text += Roff.heading("COMMANDS")
    text += root.shownSubcommands.map { command in
      Roff.item("\(Roff.bold(name(command)))(1)", Roff.escaped(command.abstract))
    }.joined()
    let recipes = CommandExamples.recipes.split(separator: "\n", omittingEmptySubsequences: false)
    text += Roff.heading("EXAMPLES") + Roff.code(recipes.map(String.init))
    if parts.count > 1 { text += Roff.heading("EXIT STATUS") + paragraphs(parts[1]) }
    text += Roff.heading("ENVIRONMENT")
    text += Self.variables.map { Roff.item(Roff.bold($0), $1) }.joined() + ".PP\n"
    text += paragraphs(
      "A command that is run for a delivery has more variables: see the page of the subcommand.")
    text += Roff.heading("SEE ALSO")
    let others = root.shownSubcommands.map { "\(Roff.bold(name($0)))(1)" }
    text += others.joined(separator: ", ")
    text += ", \(Roff.bold(ProgramName.format))(5), \(Roff.bold("flock"))(1), "
    text += "\(Roff.bold("inotify"))(7)\n"
    return text
  }

  private static let variables = [
    (ContainerSelection.groupVariable, "The group, if no option names a container."),
    (
      ContainerSelection.directoryVariable,
      "The container, if no option names one. The two variables exclude each other."
    ),
    (
      "XDG_DATA_HOME",
      "The containers of groups are in \(Roff.bold("app-groups")) in this directory; without it, in "
        + Roff.bold("~/.local/share/app-groups") + "."
    ),
    ("WORMHOLE_GROUPS", "The place on etcd of groups' containers, instead of a directory."),
    ("WORMHOLE_ETCD_PASSWORD", "The password of etcd's user, if no file has it."),
    (CommandVariable.peer, "The sender's name for the subcommands of peer."),
  ]

  private func name(_ command: CommandDescription) -> String { "\(root.name)-\(command.name)" }

  private func title(_ name: String, _ command: CommandDescription) -> String {
    Roff.title(name, .command, source: source, phrase(command.abstract))
  }

  private var source: String { "\(root.name) \(root.version ?? "")" }

  private func page(of command: CommandDescription) -> String {
    var text = title(name(command), command)
    text += Roff.heading("SYNOPSIS")
    let paths = command.paths(below: [root]).filter { $0.last?.run != nil }
    text += paths.map { Roff.line(synopsis($0)) }.joined(separator: "\n.br\n") + "\n"
    text += Roff.heading("DESCRIPTION") + explanation(command)
    if command.run == nil { text += paths.map(self.command).joined() }
    text += Roff.heading("EXAMPLES")
    for path in paths { text += Roff.code(CommandExamples.lines(of: path)) }
    text += Roff.heading("SEE ALSO")
    return text + "\(Roff.bold(root.name))(1), \(Roff.bold(ProgramName.format))(5)\n"
  }

  /// An abstract as the line of a list: without the capital letter and the full stop.
  private func phrase(_ abstract: String) -> String {
    abstract.prefix(1).lowercased() + abstract.dropFirst().prefix { $0 != "." }
  }

  private func command(_ path: [CommandDescription]) -> String {
    guard let command = path.last else { return "" }
    let names = path.dropFirst().map(\.name).joined(separator: " ")
    return Roff.heading(names, isSub: true) + explanation(command)
  }

  private func synopsis(_ path: [CommandDescription]) -> String {
    guard let command = path.last else { return "" }
    let operands = command.operands.map { Roff.escaped($0.synopsis) }
    let parts =
      [Roff.bold(path.map(\.name).joined(separator: " ")), options(command.shownOptions)] + operands
    return parts.filter { !$0.isEmpty }.joined(separator: " ")
  }

  /// The same sentences as in the help.
  private func explanation(_ command: CommandDescription) -> String {
    var text = paragraphs(command.abstract)
    if !command.discussion.isEmpty { text += ".PP\n" + paragraphs(command.discussion) }
    text += command.operands.map { Roff.item(Roff.italic($0.name), Roff.escaped($0.help)) }.joined()
    return text + command.shownOptions.map(item).joined()
  }

  private func options(_ options: [ArgumentDescription]) -> String {
    options.map { "[\(spelling($0))]" }.joined(separator: " ")
  }

  private func spelling(_ option: ArgumentDescription) -> String {
    Roff.bold("--\(option.name)") + (option.kind == nil ? "" : " " + Roff.italic(option.valueName))
  }

  private func item(_ option: ArgumentDescription) -> String {
    let letter = option.letter.map { Roff.bold("-\($0)") + ", " } ?? ""
    return Roff.item(letter + spelling(option), Roff.escaped(option.explanation))
  }

  /// The lines of a paragraph stay lines, as in the help.
  private func paragraphs(_ text: String) -> String {
    text.split(separator: "\n\n").map { paragraph in
      let lines = paragraph.split(separator: "\n").map { Roff.line(Roff.escaped(String($0))) }
      return lines.joined(separator: "\n.br\n") + "\n"
    }
    .joined(separator: ".PP\n")
  }
}

enum ManualSection: String, CaseIterable, Sendable {
  case command = "1"
  /// The format on disk: the article of the documentation.
  case format = "5"
}

/// Text in the language of man(7).
enum Roff {
  /// The text without any meaning for the formatter.
  static func escaped(_ text: String) -> String {
    text.map { escapes[$0] ?? String($0) }.joined()
  }

  /// The hyphen can be copied, and no line is broken at it.
  private static let escapes: [Character: String] = [
    "\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", "\"": "\\(dq",
    "…": "...",
  ]

  static func bold(_ text: String) -> String { "\\fB\(escaped(text))\\fP" }
  static func italic(_ text: String) -> String { "\\fI\(escaped(text))\\fP" }

  /// A line of text that is already in the language; a dot at its beginning is not a request.
  static func line(_ line: String) -> String { line.hasPrefix(".") ? "\\&" + line : line }

  /// Lines that stay lines.
  static func code(_ lines: [String]) -> String {
    ".PP\n.nf\n" + lines.map { line(escaped($0)) + "\n" }.joined() + ".fi\n"
  }

  static func title(
    _ name: String, _ section: ManualSection, source: String, _ summary: String
  ) -> String {
    let manual = section == .command ? "User Commands" : "File Formats"
    return """
      .TH "\(escaped(name.uppercased()))" \(section.rawValue) "" "\(escaped(source))" "\(manual)"
      .\\" Names and options stay whole, and lines are not stretched.
      .nh
      .ad l
      \(heading("NAME"))\(escaped(name)) \\- \(escaped(summary))

      """
  }

  static func heading(_ text: String, isSub: Bool = false) -> String {
    ".\(isSub ? "SS" : "SH") \"\(escaped(text))\"\n"
  }

  static func item(_ term: String, _ text: String) -> String {
    // Without a text, a macro would take the next request for it.
    ".TP\n\(line(term))\n\(text.isEmpty ? "\\&" : line(text))\n"
  }
}
