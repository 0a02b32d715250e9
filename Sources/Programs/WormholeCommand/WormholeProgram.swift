/// The program without its process: arguments and an environment in, an exit status out.
struct WormholeProgram {
  let root: CommandDescription
  let environment: CommandEnvironment

  func run(_ arguments: [[UInt8]]) -> ExitStatus {
    do {
      try runThrowing(arguments)
      return .done
    } catch let error as UsageError {
      printError(error.message(columns: environment.columns))
      return .usage
    } catch {
      if !(error is ExitStatus) { printError("\(root.name): \(sentence(of: error))\n") }
      return ExitStatus(of: error)
    }
  }

  private func runThrowing(_ arguments: [[UInt8]]) throws {
    let invocation = try ArgumentParser.parse(arguments, root: root, variable: environment.variable)
    switch invocation {
    case .run(let command, let parsed):
      guard let run = command.run else {
        preconditionFailure("\(parsed.commandPath) has neither subcommands nor work")
      }
      try prepare(for: parsed)
      try run(parsed, environment)
    case .help(let path):
      try environment.print(HelpText(path: path, columns: environment.columns).rendered)
    case .version(let version): try environment.print(line: version)
    case .completionScript(let shell): try environment.print(shell.script(for: root))
    }
  }

  // Does nothing in the process of a test, which must not end.
  private func prepare(for parsed: ParsedArguments) throws {
    guard let answers = environment.answers, let path = try parsed.usedPath() else { return }
    try FreeDescriptors.require(
      toUse: path,
      keepsSomeForTimers: !["peer", "queue"].allSatisfy { !parsed.commandPath.contains($0) })
    answers.begin(path: path, timeout: parsed.seconds("timeout"), tell: environment.tell)
  }

  private func printError(_ text: String) {
    environment.writeStandardError(Array(text.withoutControlCharacters.utf8))
  }
}
