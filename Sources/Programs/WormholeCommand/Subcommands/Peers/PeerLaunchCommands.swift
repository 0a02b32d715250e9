import AppGroup
import PeerConnectivity
import PropertyLists

/// The commands that register how a peer is started.
enum PeerLaunchCommand {
  static let description = CommandDescription(
    name: "launch",
    abstract: "Register how a peer is started when others need it.",
    discussion: """
      It is started once, even if many processes need it at the same moment, and only by programs of \
      the user who registered it.
      """,
    subcommands: [
      PeerLaunchSetCommand.description, PeerLaunchShowCommand.description,
      PeerLaunchRemoveCommand.description,
    ])
}

struct PeerLaunchSetCommand: Subcommand {
  /// The occasions on which a peer is started, in words.
  enum Occasion: String, CaseIterable {
    case request, queued, urgent, never

    var occasions: PeerLaunch.Occasions {
      switch self {
      case .request: .request
      case .queued: .queuedWork
      case .urgent: .urgentWork
      case .never: []
      }
    }
  }

  static let description = CommandDescription(
    name: "set",
    abstract: "Register the program to start.",
    discussion: """
      The program is looked up now, in PATH if it is not a path, and started in the directory '/'. Its \
      environment is that of the process that starts it, with the variables given here, WORMHOLE_PEER, \
      and the variable that names this container. The occasions are a request that somebody waits \
      for, a message or file that is queued, or only a message that is sent with --urgent. A \
      registration that users other than this one could change is not used.
      """,
    positionals: [.ownName],
    options: [
      .value(
        "on", "occasions", .choices(Occasion.allCases.map(\.rawValue)),
        standard: Occasion.request.rawValue,
        help: "The occasions that start it, separated by commas."),
      .value("budget", "n", .count, help: "The number of starts per day; without it, unlimited."),
      .value(
        "env", "name=value", .assignment, help: "A variable of its environment; may be repeated.",
        isRepeating: true),
    ],
    tail: TailDescription(name: "program", help: "The program, with its arguments."),
    problem: { arguments in
      let words = Set(ValueKind.list(arguments.text("on") ?? ""))
      return words.count > 1 && words.contains(Occasion.never.rawValue)
        ? "'never' excludes the other occasions" : nil
    })

  static let commandPath = ["peer", "launch", "set"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let name = arguments.requiredText("name")
    let words = arguments.tail ?? []
    let program = try CommandLinePath.program(
      words[0], searchPath: environment.variable("PATH") ?? "")
    var variables = try arguments.container.variables(to: "register")
    variables[PeerVariable.name] = name
    for text in arguments.texts("env") {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      variables[String(parts[0])] = String(parts[1])
    }
    let occasions = ValueKind.list(arguments.text("on") ?? Occasion.request.rawValue)
      .compactMap(Occasion.init(rawValue:))
      .reduce(into: PeerLaunch.Occasions()) { $0.formUnion($1.occasions) }
    try PeerLaunch.Registry(in: arguments.container.open()).set(
      PeerLaunch(
        program: program, arguments: Array(words.dropFirst()), environment: variables,
        occasions: occasions, budgetPerDay: arguments.count("budget")), for: name)
    return .done
  }
}

struct PeerLaunchShowCommand: Subcommand {
  static let description = CommandDescription(
    name: "show",
    abstract: "Print how a peer is started; exit status 1 if it is not registered.",
    discussion: """
      The line is {"arguments": ..., "budget": ..., "environment": ..., "on": ..., "output": ..., \
      "program": ..., "remaining": ...}. "budget" and "remaining", the starts left today, are there only \
      with a limit; "output", the file with its output, only after a start.
      """,
    positionals: [.ownName])

  static let commandPath = ["peer", "launch", "show"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let name = arguments.requiredText("name")
    guard let registry = try arguments.container.openExisting().map(PeerLaunch.Registry.init),
      let launch = try registry.launch(of: name)
    else {
      throw CommandError(
        verb: "show", object: "how \(name.quoted) is started", reason: "it is not registered",
        status: .no)
    }
    let occasions = PeerLaunchSetCommand.Occasion.allCases.filter {
      !$0.occasions.isEmpty && launch.occasions.isSuperset(of: $0.occasions)
    }
    let line = PropertyListValue.object([
      "program": .string(launch.program),
      "arguments": .array(launch.arguments.map { .string($0) }),
      "environment": .dictionary(launch.environment.mapValues { .string($0) }),
      "on": .array(occasions.map { .string($0.rawValue) }),
      "budget": launch.budgetPerDay.map { .integer(Int64($0)) },
      "remaining": try registry.remainingLaunches(of: name).map { .integer(Int64($0)) },
      "output": try registry.output(of: name).map { .string($0) },
    ])
    try environment.print(line: JSONWriter.string(line))
    return .done
  }
}

struct PeerLaunchRemoveCommand: Subcommand {
  static let description = CommandDescription(
    name: "remove",
    abstract: "Remove the registration of a peer; exit status 1 if it is not registered.",
    positionals: [.ownName])

  static let commandPath = ["peer", "launch", "remove"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let name = arguments.requiredText("name")
    guard let registry = try arguments.container.openExisting().map(PeerLaunch.Registry.init),
      try registry.launch(of: name) != nil
    else {
      throw CommandError(
        verb: "remove", object: "how \(name.quoted) is started",
        reason: "it is not registered", status: .no)
    }
    try registry.remove(name)
    return .done
  }
}
