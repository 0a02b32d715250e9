/// The program without its process: arguments and an environment in, an exit status out.
struct WormholeProgram {
  let root: CommandDescription
  let subcommands: [any Subcommand]
  let environment: CommandEnvironment

  func run(_ arguments: [[UInt8]]) -> ExitStatus {
    do {
      return try runThrowing(arguments)
    } catch let error as UsageError {
      printError(error.message(columns: environment.columns))
      return .usage
    } catch let error as CommandError {
      printError("\(root.name): \(error)\n")
      return error.status
    } catch {
      printError("\(root.name): \(error)\n")
      return .inputOutput
    }
  }

  private func runThrowing(_ arguments: [[UInt8]]) throws -> ExitStatus {
    switch try parse(arguments) {
    case .run(let parsed):
      return try implementation(of: parsed.commandPath).run(parsed, environment)
    case .help(let path):
      return try print(HelpText(path: path, columns: environment.columns).rendered)
    case .version(let version):
      return try print(version + "\n")
    case .completionScript(let shell):
      return try print(shell.script(for: root))
    }
  }

  private func parse(_ arguments: [[UInt8]]) throws(UsageError) -> ArgumentParser.Invocation {
    let texts: [String]
    do {
      texts = try RawArguments.decode(arguments)
    } catch {
      throw UsageError(reason: error.reason, path: [root])
    }
    return try ArgumentParser(root: root, variable: environment.variable).parse(texts)
  }

  private func implementation(of commandPath: [String]) -> any Subcommand {
    let found = subcommands.first { type(of: $0).commandPath == commandPath }
    guard let found else {
      preconditionFailure("\(commandPath) is described but not among the subcommands that run")
    }
    return found
  }

  private func print(_ text: String) throws -> ExitStatus {
    do {
      try environment.writeStandardOutput(Array(text.utf8))
    } catch {
      throw CommandError(
        verb: "write to", object: "standard output", reason: "\(error)", status: .inputOutput)
    }
    return .done
  }

  /// Errors quote foreign text, which may not steer the terminal: control characters are escaped.
  private func printError(_ text: String) {
    let harmless = text.unicodeScalars.map { scalar in
      scalar.properties.generalCategory == .control && scalar != "\n"
        ? scalar.escaped(asASCII: true) : String(scalar)
    }
    environment.writeStandardError(Array(harmless.joined().utf8))
  }
}
