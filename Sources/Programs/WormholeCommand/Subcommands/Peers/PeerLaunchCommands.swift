import WormholePeers
import WormholePropertyLists

extension CommandDescription {
  static let peerLaunch = CommandDescription(
    name: "launch",
    abstract: "Register how a peer is started when others need it.",
    discussion: """
      At most one of its processes is active, even if many need it at the same moment. It is started only \
      by programs of the user who registered it. For a container on etcd a registration belongs to its machine; 'agent' \
      follows it for other machines.
      """,
    subcommands: [.peerLaunchSet, .peerLaunchShow, .peerLaunchRemove, .peerLaunchAgent])

  static let peerLaunchSet = CommandDescription(
    name: "set",
    abstract: "Register the program to start.",
    discussion: """
      The program is looked up now, in PATH if it is not a path, and started in the directory '/'. Its \
      environment is that of the process that starts it, with the variables given here, WORMHOLE_PEER, \
      and the variable that names this container. The occasions are a request, which its sender \
      waits for, a message or file that is queued, or only a message that is sent with --urgent. A \
      registration that users other than this one could change is not used.
      """,
    arguments: [
      .ownName,
      .value(
        "on", .choices(Occasion.allCases.map(\.rawValue)), named: "occasions",
        standard: Occasion.request.rawValue,
        help: "The occasions that start it, separated by commas."),
      .value("budget", .count, help: "The number of starts per day; without it, unlimited."),
      .value(
        "env", .assignment, named: "name=value",
        help: "A variable of its environment; may be repeated.", isRepeating: true),
      .command("program", help: "The program, with its arguments."),
    ]
  ) { arguments, environment in
    let name = arguments.requiredText("name")
    let words = arguments.tail ?? []
    let program = try CommandLinePath.program(
      words[0], searchPath: environment.variable("PATH") ?? "")
    var variables = try arguments.container.variables(to: "register")
    variables[CommandVariable.peer] = name
    for text in arguments.texts("env") {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      variables[String(parts[0])] = String(parts[1])
    }
    let occasions = ValueKind.list(arguments.requiredText("on"))
      .compactMap(Occasion.init(rawValue:))
      .reduce(into: PeerLaunch.Occasions()) { $0.formUnion($1.occasions) }
    try PeerLaunch.Registry(in: arguments.container.open()).set(
      PeerLaunch(
        program: program, arguments: Array(words.dropFirst()), environment: variables,
        occasions: occasions, budgetPerDay: arguments.count("budget")), for: name)
  }
  .refusing { arguments in
    let words = Set(ValueKind.list(arguments.requiredText("on")))
    return words.count > 1 && words.contains(Occasion.never.rawValue)
      ? "'never' excludes the other occasions" : nil
  }

  static let peerLaunchShow = CommandDescription(
    name: "show",
    abstract: "Print how a peer is started; exit status 1 if it is not registered.",
    discussion: """
      The line is {"arguments": ..., "budget": ..., "environment": ..., "on": ..., "output": ..., \
      "program": ..., "remaining": ...}. "budget" and "remaining", the starts left today, are there only \
      with a limit; "output", the file with its output, only after a start.
      """,
    arguments: [.ownName, .jsonAlways]
  ) { arguments, environment in
    let name = arguments.requiredText("name")
    let (registry, launch) = try arguments.registeredLaunch(of: name, to: "show")
    let occasions = Occasion.allCases.filter {
      !$0.occasions.isEmpty && launch.occasions.isSuperset(of: $0.occasions)
    }
    let line = PropertyListValue.object([
      "program": launch.program, "arguments": launch.arguments,
      "environment": PropertyListValue.dictionary(launch.environment.mapValues { .string($0) }),
      "on": occasions.map(\.rawValue), "budget": launch.budgetPerDay,
      "remaining": try registry.remainingLaunches(of: name),
      "output": try registry.output(of: name),
    ])
    try environment.print(json: line)
  }

  static let peerLaunchRemove = CommandDescription(
    name: "remove",
    abstract: "Remove the registration of a peer; exit status 1 if it is not registered.",
    arguments: [.ownName]
  ) { arguments, _ in
    let name = arguments.requiredText("name")
    try arguments.registeredLaunch(of: name, to: "remove").registry.remove(name)
  }

  static let peerLaunchAgent = CommandDescription(
    name: "agent",
    abstract: "Start registered peers when other machines need them; for a container on etcd.",
    discussion: """
      A registration stays on its machine. In a directory each process that needs the peer starts it; on \
      etcd so does each process of this machine, and this program for those of other machines. It runs \
      only what is registered here, with its occasions and its budget, and only while no process is \
      active under the name. Failures are reported on standard error, and to the process that waits.

      Without a name it starts all peers that are registered here when it begins. It prints 'listening' \
      on standard error once it can be asked, and runs until it gets SIGTERM or SIGINT. An example of a \
      systemd unit, wormhole-agent.service, comes with the packages.
      """,
    arguments: [
      .list("name", .live(.peer), isOptional: true, help: "The name of a registered peer."),
      .readyDescriptor,
    ]
  ) { arguments, environment in
    let container = try arguments.container.open()
    let given = arguments.texts("name")
    let names = try given.isEmpty ? PeerLaunch.Registry(in: container).peers() : given
    guard !names.isEmpty else {
      throw CommandError.no("start peers", because: "none is registered on this machine")
    }
    let interruption = try Interruption()
    let agent = try PeerLaunch.Agent(for: names, in: container) { environment.report($0) }
    defer { agent.close() }
    environment.reportListening(endsWithReader: false)
    try interruption.waitForEnd()
  }
}

extension ParsedArguments {
  fileprivate func registeredLaunch(
    of name: String, to verb: String
  ) throws -> (registry: PeerLaunch.Registry, launch: PeerLaunch) {
    guard let registry = try container.openExisting().map(PeerLaunch.Registry.init),
      let launch = try registry.launch(of: name)
    else {
      throw CommandError.no(
        "\(verb) how \(name.quoted) is started", because: "it is not registered")
    }
    return (registry, launch)
  }
}

/// The occasions on which a peer is started, in words.
private enum Occasion: String, CaseIterable {
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
