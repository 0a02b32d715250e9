import Dispatch
import Wormhole
import WormholePropertyLists

extension CommandDescription {
  /// The commands for presences: which processes are there under a name.
  static let presence = CommandDescription(
    name: "presence",
    abstract: "Be present under a name, and see which processes are.",
    discussion: """
      In a directory a process is present until it leaves or ends, however it ends; the kernel tells that \
      at once. On etcd one that was killed, or cut off, is present for another 5 seconds.
      """,
    subcommands: [.presenceEnter, .presenceList, .presenceWait], run: nil)

  static let presenceList = CommandDescription(
    name: "list",
    abstract: "Show the processes that are present, the oldest first.",
    discussion: """
      With a name the exit status is 1 if no process is present under it. With --json a line is \
      {"content": ..., "host": ..., "id": ..., "isExclusive": ..., "name": ..., "process": ..., \
      "program": ..., "since": ..., "state": ...}, without what is not known. The state is 'running', \
      'suspended', or 'unknown' for a process that this machine or container does not see.
      """,
    positionals: [
      PositionalDescription(
        name: "name", help: "The name; without it, all names are shown.", kind: .live(.presence),
        isOptional: true)
    ],
    options: [.flag("json", help: "Print a line of JSON for each instead of text for people.")]
  ) { arguments, environment in
    let container = try arguments.container.openExisting()
    let name = arguments.text("name")
    let names = try name.map { [$0] } ?? container?.presenceNames().sorted() ?? []
    var found: [(name: String, member: PresenceMember)] = []
    for name in names {
      found += try container?.presence(name).members().map { (name, $0) } ?? []
    }
    try environment.print(found, arguments)
    if found.isEmpty, name != nil { throw ExitStatus.no }
  }

  static let presenceWait = CommandDescription(
    name: "wait",
    abstract: "Wait until processes are present, or with --gone until none is, and print them.",
    discussion: """
      Those that are present already count. The lines are as of 'presence list'. If the command has to \
      wait, it prints 'listening' on standard error.
      """,
    positionals: [.presenceName],
    options: [
      .value("count", "n", .count, standard: "1", help: "Wait for at least this many."),
      .flag("gone", help: "Wait until no process is present."), .timeout, .readyDescriptor,
      .flag("json", help: "Print a line of JSON for each instead of text for people."),
    ]
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let name = arguments.requiredText("name")
    let isGone = arguments.has("gone")
    // Where there is no container, nobody is present.
    if isGone, try arguments.container.existing() == nil { return }
    let opened = try arguments.container.openToListen(until: deadline, environment)
    let presence = opened.container.presence(name)
    let looks = Backlog<[PresenceMember]>.latest { _ in true }
    let observation = try presence.observe(
      startsWithCurrent: true, on: DispatchQueue(label: "wormhole.presence")
    ) { looks.add($0) }
    try withExtendedLifetime(observation) {
      // Here and now first, because the observation may come too late for the deadline.
      var look: [PresenceMember]? = try presence.members()
      var hasTold = opened.isNew
      while let members = look {
        let isReached =
          isGone ? members.isEmpty : members.count >= arguments.count("count") ?? 1
        if isReached { return try environment.print(members.map { (name, $0) }, arguments) }
        if !hasTold, deadline > .now {
          environment.tellIfPolling(observation.detection, name)
          environment.tellListening()
          hasTold = true
        }
        look = looks.next(until: deadline)
      }
      throw ExitStatus.deadline
    }
  }
  .refusing { arguments in
    arguments.has("gone") && arguments.text("count") != nil
      ? "--gone and --count exclude each other" : nil
  }
}

extension PositionalDescription {
  static let presenceName = PositionalDescription(
    name: "name", help: "The name; any text.", kind: .live(.presence))
}

extension CommandEnvironment {
  /// Prints processes with the names under which they are present.
  fileprivate func print(
    _ found: [(name: String, member: PresenceMember)], _ arguments: ParsedArguments
  ) throws {
    if arguments.has("json") {
      for (name, member) in found {
        var line = member.propertyList
        line["name"] = .string(name)
        line["host"] = member.host.map { .string($0) }
        try print(json: line)
      }
      return
    }
    let rows = found.map { name, member in
      let role = member.isExclusive ? ", alone" : ""
      return [name, member.sinceText + role, member.content?.shortText() ?? "-"]
    }
    try print(
      TextTable(["PRESENT AS", "PROCESS", "CONTENT"], rows, columns: tableColumns).rendered)
  }
}
