/// The program without its process: arguments and an environment in, an exit status out.
struct WormholeProgram {
  let root: CommandDescription
  let environment: CommandEnvironment

  func run(_ arguments: [[UInt8]]) -> ExitStatus {
    do {
      return try runThrowing(arguments)
    } catch let error as UsageError {
      printError(error.message(columns: environment.columns))
      return .usage
    } catch {
      if !(error is OutputIsClosed) { printError("\(root.name): \(sentence(of: error))\n") }
      return ExitStatus(of: error)
    }
  }

  private func runThrowing(_ arguments: [[UInt8]]) throws -> ExitStatus {
    let invocation = try ArgumentParser.parse(
      arguments, root: root, variable: environment.variable)
    switch invocation {
    case .run(let command, let parsed):
      guard let run = command.run else {
        preconditionFailure("\(parsed.commandPath) has neither subcommands nor work")
      }
      try prepare(for: parsed)
      return try run(parsed, environment)
    case .help(let path):
      return try print(HelpText(path: path, columns: environment.columns).rendered)
    case .version(let version):
      return try print(version + "\n")
    case .completionScript(let shell):
      return try print(shell.script(for: root))
    }
  }

  // Does nothing in the process of a test, which must not end.
  private func prepare(for parsed: ParsedArguments) throws {
    guard let answers = environment.answers, let path = try parsed.usedPath() else { return }
    try FreeDescriptors.require(
      toUse: path, keepsSomeForTimers: parsed.commandPath.contains("peer"))
    answers.begin(path: path, timeout: parsed.seconds("timeout"), tell: environment.tell)
  }

  private func print(_ text: String) throws -> ExitStatus {
    try environment.print(Array(text.utf8))
    return .done
  }

  private func printError(_ text: String) {
    environment.writeStandardError(Array(text.withoutControlCharacters.utf8))
  }
}
