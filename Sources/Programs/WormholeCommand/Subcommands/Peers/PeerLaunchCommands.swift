import WormholePeers
import WormholePropertyLists

extension CommandDescription {
  static let peerLaunch = CommandDescription(
    name: "launch",
    abstract: "Register how a peer is started when others need it, or print that.",
    discussion: """
      At most one of its processes is active, even if many need it at the same moment. It is started only \
      by programs of the user who registered it. Without a program, --remove and --agent the registration is \
      printed, as {"arguments": ..., "budget": ..., "environment": ..., "on": ..., "output": ..., \
      "program": ..., "remaining": ...}; "budget" and "remaining", the starts left today, are there only \
      with a limit, and "output", the file with its output, only after a start. The exit status is 1 if the peer is \
      not registered.

      The program is looked up now, in PATH if it is not a path, and started in the directory '/'. Its \
      environment is that of the process that starts it, with the variables given here, WORMHOLE_PEER, \
      and the variable that names this container. The occasions are a request, which its sender \
      waits for, a message or file that is queued, or only a message that is sent with --urgent. A \
      registration that users other than this one could change is not used.

      A registration stays on its machine. In a directory each process that needs the peer starts it; on \
      etcd so does each process of this machine, and a program with --agent for those of other machines, of the \
      given peers or of all that are registered when it begins. It starts a peer only while no process is \
      active under the name. It prints 'listening' on standard error once it can be asked, reports failures there, \
      and runs until it gets SIGTERM or SIGINT. An example of a systemd unit, wormhole-agent.service, comes with \
      the packages.
      """,
    arguments: [
      .list("name", .live(.peer), isOptional: true, help: "The name of the peer; any text."),
      .value(
        "on", .choices(Occasion.allCases.map(\.rawValue)), named: "occasions",
        standard: Occasion.request.rawValue,
        help: "The occasions that start it, separated by commas."),
      .value("budget", .count, help: "The number of starts per day; without it, unlimited."),
      .value(
        "env", .assignment, named: "name=value",
        help: "A variable of its environment; may be repeated.", isRepeating: true),
      .flag("remove", help: "Remove the registration."),
      .flag("agent", help: "Start peers for other machines; for a container on etcd."),
      .readyDescriptor, .jsonAlways,
      .command("The program that is started, with its arguments."),
    ]
  ) { arguments, environment in
    if arguments.has("agent") { return try arguments.runAgent(environment) }
    let name = arguments.requiredText("name")
    if let words = arguments.tail {
      return try arguments.registerLaunch(of: name, words, environment)
    }
    let (registry, launch) = try arguments.registeredLaunch(of: name)
    if arguments.has("remove") { return try registry.remove(name) }
    let occasions = Occasion.allCases.filter {
      !$0.occasions.isEmpty && launch.occasions.isSuperset(of: $0.occasions)
    }
    let line: JSONObject = [
      "program": launch.program, "arguments": launch.arguments,
      "environment": launch.environment,
      "on": occasions.map(\.rawValue), "budget": launch.budgetPerDay,
      "remaining": try registry.remainingLaunches(of: name),
      "output": try registry.output(of: name),
    ]
    try environment.print(json: line)
  }
  .refusing { arguments in
    if arguments.tail != nil, let flag = ["remove", "agent"].first(where: arguments.has) {
      return "--\(flag) and a program exclude each other"
    }
    if let conflict = arguments.conflict(of: "remove", "agent") { return conflict }
    if !arguments.has("agent"), arguments.texts("name").count != 1 {
      return arguments.texts("name").isEmpty
        ? "missing expected argument '<name>'" : "several names need --agent"
    }
    if arguments.tail == nil, let option = ["on", "budget", "env"].first(where: arguments.isGiven) {
      return "--\(option) needs a program after '--'"
    }
    let words = Set(ValueKind.list(arguments.requiredText("on")))
    return words.count > 1 && words.contains(Occasion.never.rawValue)
      ? "'never' excludes the other occasions" : nil
  }
}

extension ParsedArguments {
  fileprivate func registeredLaunch(
    of name: String
  ) throws -> (registry: PeerLaunch.Registry, launch: PeerLaunch) {
    guard let registry = try container.openExisting().map(PeerLaunch.Registry.init),
      let launch = try registry.launch(of: name)
    else {
      let verb = has("remove") ? "remove" : "show"
      throw CommandError.no(
        "\(verb) how \(name.quoted) is started", because: "it is not registered")
    }
    return (registry, launch)
  }

  fileprivate func registerLaunch(
    of name: String, _ words: [String], _ environment: CommandEnvironment
  ) throws {
    let program = try CommandLinePath.program(
      words[0], searchPath: environment.variable("PATH") ?? "")
    var variables = try container.variables(to: "register")
    variables[CommandVariable.peer] = name
    for text in texts("env") {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      variables[String(parts[0])] = String(parts[1])
    }
    let occasions = ValueKind.list(requiredText("on"))
      .compactMap(Occasion.init(rawValue:))
      .reduce(into: PeerLaunch.Occasions()) { $0.formUnion($1.occasions) }
    try PeerLaunch.Registry(in: container.open()).set(
      PeerLaunch(
        program: program, arguments: Array(words.dropFirst()), environment: variables,
        occasions: occasions, budgetPerDay: count("budget")), for: name)
  }

  fileprivate func runAgent(_ environment: CommandEnvironment) throws {
    let container = try container.open()
    let given = texts("name")
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
