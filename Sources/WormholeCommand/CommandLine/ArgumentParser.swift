/// Turns a command line into what the description says it means.
///
/// The conventions are those of swift-argument-parser: `--option value` and `--option=value`, an
/// option's value does not begin with a dash unless it is a number or the lone `-`, options and
/// positionals mix freely, `--` ends the options, and the last of equal options counts.
struct ArgumentParser {
  let root: CommandDescription
  /// Looks up an environment variable.
  let variable: (String) -> String?

  enum Invocation {
    case run(ParsedArguments)
    case help([CommandDescription])
    case version(String)
    case completionScript(CompletionShell)
  }

  /// - Throws: what does not fit, with the command that was reached.
  func parse(_ arguments: [String]) throws(UsageError) -> Invocation {
    var line = CommandLineReading(root: root, arguments: arguments)
    if let early = try line.readAll() { return early }
    let parsed = try line.finished(variable: variable)
    if let problem = line.command.problem(parsed) { throw line.error(problem) }
    return .run(parsed)
  }
}

extension UsageError {
  static func unknownSubcommand(_ name: String, path: [CommandDescription]) -> Self {
    let names = path.last?.subcommands.map(\.name) ?? []
    let commandName = path.map(\.name).joined(separator: " ")
    guard !names.isEmpty else {
      return Self(reason: "'\(commandName)' has no subcommands, found '\(name)'", path: path)
    }
    let helpful = path.count == 1 ? names + ["help"] : names
    let question =
      Suggestion.nearest(to: name, among: helpful)
      .map { "did you mean '\($0)'?" } ?? "expected one of \(names.joined(separator: ", "))"
    return Self(reason: "unknown subcommand '\(name)': \(question)", path: path)
  }
}
