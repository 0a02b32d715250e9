/// The manual page of the command: the help of every command, in one page.
struct CommandManual {
  let root: CommandDescription

  var page: String {
    var text = Roff.title(root.name, .command, source: "\(root.name) \(root.version ?? "")")
    text += Roff.heading("NAME")
    text += "\(Roff.escaped(root.name)) \\- \(Roff.escaped(phrase(root.abstract)))\n"
    text += Roff.heading("SYNOPSIS")
    text += "\(Roff.bold(root.name)) \(options(root.globalOptions)) \(Roff.italic("command")) ...\n"
    text += Roff.heading("DESCRIPTION")
    let parts = root.discussion.split(separator: "Exit status:\n", maxSplits: 1).map(String.init)
    text += paragraphs(parts[0])
    text += Roff.heading("OPTIONS")
    text += Roff.bold("--group") + " and " + Roff.bold("--container")
    text += " may stand at any place of the line.\n"
    text += CommandDescription.options(at: [root]).map(item).joined()
    text += Roff.heading("COMMANDS")
    for path in root.paths().dropFirst() where path.last?.run != nil { text += command(path) }
    if parts.count > 1 { text += Roff.heading("EXIT STATUS") + paragraphs(parts[1]) }
    text += Roff.heading("ENVIRONMENT")
    text += Roff.item(
      Roff.bold(ContainerSelection.groupVariable), "The group, if no option names a container.")
    text += Roff.item(
      Roff.bold(ContainerSelection.directoryVariable),
      "The container, if no option names one and there is no group.")
    text += Roff.item(
      Roff.bold("XDG_DATA_HOME"),
      "The containers of groups are in " + Roff.bold("app-groups")
        + " in this directory; without it, "
        + "in " + Roff.bold("~/.local/share/app-groups") + ".")
    text += Roff.heading("SEE ALSO")
    text += "\(Roff.bold(ProgramName.format))(5), \(Roff.bold("flock"))(1), "
    text += "\(Roff.bold("inotify"))(7)\n"
    return text
  }

  /// An abstract as the line of a list: without the capital letter and the full stop.
  private func phrase(_ abstract: String) -> String {
    abstract.prefix(1).lowercased() + abstract.dropFirst().prefix { $0 != "." }
  }

  private func command(_ path: [CommandDescription]) -> String {
    guard let command = path.last else { return "" }
    let names = path.dropFirst().map(\.name).joined(separator: " ")
    var text = Roff.heading(names, isSub: true)
    let operands = command.operands.map { Roff.escaped($0.synopsis) }
    let parts = [Roff.bold(names), options(command.options)] + operands
    text += Roff.line(parts.filter { !$0.isEmpty }.joined(separator: " ")) + "\n.PP\n"
    text += paragraphs(command.abstract)
    if !command.discussion.isEmpty { text += ".PP\n" + paragraphs(command.discussion) }
    text += command.operands.map { Roff.item(Roff.italic($0.name), Roff.escaped($0.help)) }.joined()
    return text + command.options.map(item).joined()
  }

  private func options(_ options: [OptionDescription]) -> String {
    options.map { "[\(spelling($0))]" }.joined(separator: " ")
  }

  private func spelling(_ option: OptionDescription) -> String {
    let value = option.value.map { " " + Roff.italic($0.name) } ?? ""
    return Roff.bold("--\(option.name)") + value
  }

  private func item(_ option: OptionDescription) -> String {
    let letter = option.letter.map { Roff.bold("-\($0)") + ", " } ?? ""
    return Roff.item(letter + spelling(option), Roff.escaped(option.explanation))
  }

  /// The lines of a paragraph stay lines, as in the help.
  private func paragraphs(_ text: String) -> String {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    var result = ""
    for (index, line) in lines.enumerated() {
      guard !line.isEmpty else {
        result += ".PP\n"
        continue
      }
      result += Roff.line(Roff.escaped(String(line))) + "\n"
      if index + 1 < lines.count, !lines[index + 1].isEmpty { result += ".br\n" }
    }
    return result
  }
}
