import Wormhole
import WormholePropertyLists
import WormholeTerminals

// Arguments that several commands share.

extension ArgumentDescription {
  static let count = value("count", .count, help: "Stop after this many; without it, never.")

  static let timeout = value(
    "timeout", .duration, help: "Give up after this time, with exit status 124; without it, never.")

  /// The form in which values are printed.
  static let format = value(
    "format", .choice(OutputFormat.allCases.map(\.rawValue)), named: "format", standard: "json",
    help: "How values are printed: 'raw' is a string's text or the bytes of data, and else JSON.")

  static let details = flag(
    "details", help: "Print each with what is known of it: who sent it, and when.")

  static let json = flag("json", help: "Print one line of JSON instead of text for people.")

  /// For a command that prints nothing else: accepted, as other commands have it, and not shown.
  static let jsonAlways = flag("json", help: "Print JSON, which is the default.").hidden

  static let jsonLines = flag(
    "json", help: "Print a line of JSON for each instead of text for people.")

  static let whileRole = value(
    "while", .live(.role), named: "name",
    help: "Do it only under this claim or exclusive role, as long as nobody else has had it since "
      + "\(CommandVariable.fence) was set; otherwise nothing changes, and the exit status is 1.")

  /// - Parameter content: the content that is to survive.
  static func durable(_ content: String) -> ArgumentDescription {
    flag("durable", help: "Return only when \(content) would survive a loss of power.")
  }

  static let yes = flag("yes", help: "Do not ask. Needed where no terminal can answer.")

  static let allFailed = flag("failed", help: "All that have failed and were kept.")

  static let valueName = operand(
    "name", .live(.value), help: "The name of the value; any text.")

  /// - Parameter noun: What it is: "value".
  static func jsonValue(_ noun: String) -> ArgumentDescription {
    optional(
      "value",
      help: "The \(noun), as JSON; without it, or with '-', it is read from standard input.")
  }

  static let notificationName = operand(
    "name", .live(.notification), help: "The name of the notification; any text.")

  static let notificationNames = list(
    "name", .live(.notification), help: "The names of the notifications; any text.")
}

extension CommandDescription {
  /// For the help of a command that runs another one for each item.
  static let eachCommand = """
    With a COMMAND, a failure is reported and the wait goes on; in the end the exit status is that of the \
    last COMMAND that failed. COMMAND ends together with this program.
    """
}

extension ParsedArguments {
  static let watchProblem: @Sendable (ParsedArguments) -> String? = { arguments in
    guard !arguments.has("watch") else { return nil }
    if arguments.tail != nil { return "a command after '--' needs --watch" }
    return arguments.isGiven("count") || arguments.isGiven("timeout")
      ? "--count and --timeout need --watch" : nil
  }

  /// The problem if a value is to be printed in two forms.
  var outputProblem: String? {
    if outputFormat == .raw, has("details") {
      return "--format raw and --details exclude each other"
    }
    return has("json") && isGiven("format") && outputFormat != .json
      ? "--format and --json exclude each other" : nil
  }

  func conflict(of options: String...) -> String? {
    let given = options.filter(isGiven)
    return given.count > 1 ? "--\(given[0]) and --\(given[1]) exclude each other" : nil
  }

  /// The problem of a command that works on the given ids, or on all that failed.
  static let idsOrFailed: @Sendable (ParsedArguments) -> String? = { arguments in
    arguments.has("failed") == arguments.texts("id").isEmpty
      ? nil : "please provide ids, or '--failed'"
  }

  /// Runs an action for each given id, or for the failed ones for which `--failed` stands, even
  /// after one for which it fails. It returns why it is impossible, or nil. Another process may be
  /// faster with some failed ones.
  func forEachID(
    _ ids: [String]? = nil, to verb: String, _ environment: CommandEnvironment,
    failed: [String] = [], _ action: (String) throws -> String?
  ) throws {
    if has("failed") {
      for id in failed { _ = try action(id) }
      return
    }
    var status = ExitStatus.done
    for id in ids ?? texts("id") {
      guard let problem = try action(id) else { continue }
      environment.report("cannot \(verb) \(id.quoted): \(problem)")
      status = .no
    }
    try status.end()
  }

  /// Makes a change under the role that `--while` names, if it names one.
  func underRole(
    _ environment: CommandEnvironment, in container: SharedContainer,
    _ body: (Fence?) throws -> Void
  ) throws {
    guard let role = text("while") else { return try body(nil) }
    guard let number = environment.variable(CommandVariable.fence).flatMap({ UInt64($0) }) else {
      throw CommandError(
        cannot: "use --while \(role.quotedForShell)",
        because:
          "\(CommandVariable.fence) has no number: it is in the environment of a command that "
          + "runs under 'lock --name', and 'claim' prints it", status: .usage)
    }
    do {
      let claim = container.claim(role)
      let isClaimed = try claim.holder()?.fence == number
      try body(isClaimed ? claim.fence(number) : container.presence(role).fence(number))
    } catch let error as WormholeError where error.code == .leaseLost {
      throw CommandError.no("change anything under \(role.quoted)", because: error.reason)
    }
  }

  var durability: Durability { has("durable") ? .durable : .standard }

  var outputFormat: OutputFormat { OutputFormat(rawValue: text("format") ?? "") ?? .json }

  /// The command after `--`, in whose environment the container is that of this line; nil without one.
  func command() throws -> ExternalCommand? {
    try tail.map { ExternalCommand(words: $0, container: try containerVariables()) }
  }

  /// The environment in which a command finds this line's container.
  func containerVariables() throws -> [String: String] {
    try selectedContainer?.variables(to: "run") ?? [:]
  }

  func requiredCommand() throws -> ExternalCommand {
    guard let command = try command() else {
      preconditionFailure("'\(commandPath)' does not require a command")
    }
    return command
  }

  /// Prints a delivery, or runs the command of the line with it on standard input, which may
  /// continue past the deadline. Returns its status; `.no` for a value that this format lacks,
  /// which is reported.
  ///
  /// - Parameter text: The line for people, without `--json`; nil for content that has none.
  func hand(
    _ content: some Encodable, text: String? = nil, titled title: String,
    _ environment: CommandEnvironment, variables: [String: String],
    _ interruption: (Interruption, ContinuousClock.Instant)? = nil
  ) throws -> ExitStatus {
    let bytes: [UInt8]
    do {
      let line = has("json") ? nil : text.map { Array("\($0)\n".utf8) }
      bytes = try line ?? outputFormat.bytes(content, of: title)
    } catch let error as CommandError {
      environment.report(error)
      return .no
    }
    return try hand(
      bytes: bytes, titled: title, environment, variables: variables, interruption)
  }

  /// - Parameter interruption: what receives the signals, if the command receives them, and the end of the
  ///   time for printing.
  func hand(
    bytes: [UInt8], titled title: String, _ environment: CommandEnvironment,
    variables: [String: String], _ interruption: (Interruption, ContinuousClock.Instant)? = nil
  ) throws -> ExitStatus {
    guard let command = try command() else {
      if let (interruption, deadline) = interruption {
        try environment.print(bytes, interruption, until: deadline)
      } else {
        try environment.print(bytes)
      }
      return .done
    }
    let termination = try environment.withoutTimeLimit {
      try command.run(input: bytes, variables: variables, interruption: interruption?.0)
    }.termination
    if let failure = command.failure(termination) {
      environment.report("\(failure), given \(title)")
    }
    return ExitStatus(termination)
  }

  /// The end of the time that `--timeout` gives; without it, and without a standard, practically
  /// never.
  func deadline() -> ContinuousClock.Instant {
    .now + (duration("timeout") ?? .seconds(ValueKind.maximumSeconds))
  }

  /// Asks a person at the terminal, unless `--yes` is given; throws if the answer is not yes, or
  /// there is no person to ask.
  func confirm(_ question: String, _ environment: CommandEnvironment) throws {
    guard !has("yes") else { return }
    guard environment.isInputTerminal, environment.errorColumns != nil else {
      throw CommandError(
        cannot: "ask for a confirmation",
        because: "no terminal to ask on; use --yes", status: .usage)
    }
    environment.writeStandardError(Array("\(question.onOneLine) [y/N] ".utf8))
    let answer = String(
      decoding: try environment.withoutTimeLimit(environment.readInput), as: UTF8.self)
    guard ["y", "yes"].contains(answer.prefix { !$0.isNewline }.lowercased()) else {
      throw ExitStatus.no
    }
  }
}
