import AppGroup
import PeerConnectivity
import PropertyLists

/// The group of commands that say how a peer is started.
enum PeerLaunchCommand {
  static let description = CommandDescription(
    name: "launch",
    abstract: "Say how a peer is started when others need it.",
    discussion: """
      It is started once, however many processes ask at the same moment, and only by programs of \
      the user who registered it.
      """,
    subcommands: [
      PeerLaunchSetCommand.description, PeerLaunchShowCommand.description,
      PeerLaunchRemoveCommand.description,
    ])
}

struct PeerLaunchSetCommand: Subcommand {
  /// For what a peer is started, in words.
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
    abstract: "Register the program that is started.",
    discussion: """
      The program is looked up now, in PATH if it is no path, and started in the directory '/'. Its \
      environment is that of whoever starts it, with the variables given here, WORMHOLE_PEER, and \
      what names this container. The occasions are a request that somebody waits for, a message or \
      file that is queued, or only a message that is sent with --urgent. No registration is \
      followed that others than this user could change.
      """,
    positionals: [.ownName],
    options: [
      .value(
        "on", "occasions", .choices(Occasion.allCases.map(\.rawValue)),
        standard: Occasion.request.rawValue,
        help: "For what it is started; several are separated by commas."),
      .value("budget", "n", .count, help: "Start it at most so often a day; without it, always."),
      .value(
        "env", "name=value", .assignment, help: "A variable for its environment; may be repeated.",
        isRepeating: true),
    ],
    tail: TailDescription(name: "program", help: "The program, with its arguments."),
    problem: { arguments in
      let words = Set(ValueKind.list(arguments.text("on") ?? ""))
      return words.count > 1 && words.contains(Occasion.never.rawValue)
        ? "'never' goes with no other occasion" : nil
    })

  static let commandPath = ["peer", "launch", "set"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let name = arguments.requiredText("name")
    let words = arguments.tail ?? []
    let program = try ProgramLookup(path: environment.variable("PATH") ?? "").absolute(words[0])
    var variables = try arguments.container.variables(to: "register")
    variables[PeerVariable.name] = name
    for text in arguments.texts("env") {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      variables[String(parts[0])] = String(parts[1])
    }
    let occasions = ValueKind.list(arguments.text("on") ?? Occasion.request.rawValue)
      .compactMap(Occasion.init(rawValue:))
      .reduce(into: PeerLaunch.Occasions()) { $0.formUnion($1.occasions) }
    try PeerSession.setLaunch(
      PeerLaunch(
        program: program, arguments: Array(words.dropFirst()), environment: variables,
        occasions: occasions, budgetPerDay: arguments.count("budget")),
      of: name, in: arguments.container.open())
    return .done
  }
}

struct PeerLaunchShowCommand: Subcommand {
  static let description = CommandDescription(
    name: "show",
    abstract: "Print how a peer is started; exit status 1 if nobody has registered it.",
    discussion: """
      The line is {"arguments": ..., "budget": ..., "environment": ..., "on": ..., "output": ..., \
      "program": ..., "remaining": ...}; "budget" and "remaining", how often it may still be \
      started today, only where there is a limit; "output", the file with what it printed, only \
      when it was started.
      """,
    positionals: [.ownName])

  static let commandPath = ["peer", "launch", "show"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let name = arguments.requiredText("name")
    guard let container = try arguments.container.openExisting(),
      let launch = try PeerSession.launch(of: name, in: container)
    else {
      throw CommandError(
        verb: "show", object: "how \(name.quoted) is started", reason: "nobody has registered it",
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
      "remaining": try PeerSession.remainingLaunches(of: name, in: container)
        .map { .integer(Int64($0)) },
      "output": try PeerSession.launchOutput(of: name, in: container).map { .string($0) },
    ])
    try environment.print(line: JSONWriter.string(line))
    return .done
  }
}

struct PeerLaunchRemoveCommand: Subcommand {
  static let description = CommandDescription(
    name: "remove",
    abstract: "Remove how a peer is started; exit status 1 if nobody has registered it.",
    positionals: [.ownName])

  static let commandPath = ["peer", "launch", "remove"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let name = arguments.requiredText("name")
    guard let container = try arguments.container.openExisting(),
      try PeerSession.launch(of: name, in: container) != nil
    else {
      throw CommandError(
        verb: "remove", object: "how \(name.quoted) is started",
        reason: "nobody has registered it", status: .no)
    }
    try PeerSession.removeLaunch(of: name, in: container)
    return .done
  }
}

extension ContainerSelection {
  /// What names this container in the environment of another program; the empty one counts as unset.
  func variables(to verb: String) throws -> [String: String] {
    switch self {
    case .group(let group): [Self.groupVariable: group, Self.directoryVariable: ""]
    case .directory(let directory):
      [
        Self.directoryVariable: try WorkingDirectory.absolute(directory, to: verb),
        Self.groupVariable: "",
      ]
    }
  }
}
