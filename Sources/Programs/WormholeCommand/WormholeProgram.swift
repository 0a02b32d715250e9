import WormholeSystem

/// The program without its process: arguments and an environment in, an exit status out.
struct WormholeProgram {
  let root: CommandDescription
  let environment: CommandEnvironment

  func run(_ arguments: [[UInt8]]) -> ExitStatus {
    var hasTimeout = false
    do {
      try runThrowing(arguments, &hasTimeout)
      return .done
    } catch let error as UsageError {
      printError(error.message(columns: environment.columns))
      return .usage
    } catch {
      if !(error is ExitStatus) { printError("\(root.name): \(sentence(of: error))\n") }
      return ExitStatus(of: error, hasTimeout: hasTimeout)
    }
  }

  private func runThrowing(_ arguments: [[UInt8]], _ hasTimeout: inout Bool) throws {
    let invocation = try ArgumentParser.parse(arguments, root: root, variable: environment.variable)
    switch invocation {
    case .run(let command, let parsed):
      guard let run = command.run else {
        preconditionFailure("\(parsed.commandPath) has neither subcommands nor work")
      }
      guard Program.hasProcessTable else {
        throw CommandError(
          cannot: "run \(parsed.commandPath.joined(separator: " "))",
          because: "/proc is missing, which shows the other processes: mount -t proc proc /proc")
      }
      var environment = environment
      // One of several copies tells the process that started it that it waits.
      let isCopy = environment.variable(CommandVariable.copy) != nil
      environment.readiness = try Readiness(
        socket: environment.variable(Readiness.socketVariable),
        descriptor: isCopy ? 10 : parsed.unsigned("ready-fd"))
      // The command that it runs shares our standard output, and notices the end itself.
      if parsed.tail != nil { environment.endWithReader = {} }
      try prepare(for: parsed)
      hasTimeout = parsed.isGiven("timeout")
      let deadline = parsed.callTime(of: command).map { ContinuousClock.now + $0 }
      do {
        try run(parsed.limited(until: deadline), environment)
      } catch let error where error is Errno || error is ThreadShortage {
        throw CommandError(
          cannot: "finish \(parsed.commandPath.joined(separator: " "))", because: error)
      }
    case .help(let path, let isWhole):
      let help = HelpText(path: path, columns: environment.columns)
      try environment.print(isWhole ? help.rendered : help.short)
    case .listing(let path):
      try environment.print(json: CommandListing(path: path))
    case .manualPage(let name):
      guard let page = CommandManual(root: root).page(named: name) else {
        throw UsageError(
          reason: "there is no manual page '\(name)': give 1, 5 or the name of a command",
          path: [root])
      }
      try environment.print(page)
    case .text(let text): try environment.print(text)
    }
  }

  // Does nothing in the process of a test, which must not end.
  private func prepare(for parsed: ParsedArguments) throws {
    guard let answers = environment.answers, let path = try parsed.usedPath() else { return }
    try FreeDescriptors.require(
      toUse: path,
      keepsSomeForTimers: !["peer", "queue"].allSatisfy { !parsed.commandPath.contains($0) })
    answers.begin(
      path: path, timeout: parsed.isGiven("timeout") ? parsed.duration("timeout") : nil,
      report: environment.report)
  }

  private func printError(_ text: String) {
    environment.writeStandardError(Array(text.withoutControlCharacters.utf8))
  }
}

extension ParsedArguments {
  /// The time of a command that waits for nothing but etcd.
  private static let standardTime: Duration = .seconds(10)

  /// The time of all calls of a command to etcd, together; nil for a command that listens without a
  /// limit. A call that begins later has a second.
  fileprivate func callTime(of command: CommandDescription) -> Duration? {
    if let time = duration("timeout") { return time }
    guard command.options.contains(where: { $0.name == "timeout" }) else {
      return Self.standardTime
    }
    // In commands with one of these, --timeout belongs to an option that is not given.
    let conditions = ["watch", "wait", "new"]
    return command.options.contains { conditions.contains($0.name) }
      && !(conditions + ["follow"]).contains(where: isGiven) ? Self.standardTime : nil
  }
}
