import Wormhole
import WormholePropertyLists
import WormholeSystem

extension CommandDescription {
  static let presence = CommandDescription(
    name: "presence",
    abstract: "Announce a process under a name, and list the others.",
    discussion: """
      In a directory a process is present until it leaves or ends, however it ends; the kernel reports that \
      at once. On etcd one that was killed, or cut off, is present for another 8 seconds.
      """,
    subcommands: [.presenceEnter, .presenceList, .presenceWait])

  static let presenceList = CommandDescription(
    name: "list",
    abstract: "Show the processes that are present, the oldest first.",
    discussion: """
      The exit status is 1 if there is none, and 65 if a name cannot be looked at, which is reported after \
      the others. With --json a line is \
      {"content": ..., "host": ..., "id": ..., "isExclusive": ..., "name": ..., "process": ..., \
      "program": ..., "since": ..., "state": ...}, without what is not known. The state is 'running', \
      'suspended', or 'unknown' for a process that this machine or container does not see.
      """,
    arguments: [
      .optional("name", .live(.presence), help: "The name; without it, all names are shown."),
      .jsonLines,
    ]
  ) { arguments, environment in
    let container = try arguments.container.openExisting()
    let name = arguments.text("name")
    guard let container else { throw ExitStatus.no }
    var faults = NameFaults()
    let names = try name.map { [$0] } ?? container.identifiers(of: .presence, &faults).sorted()
    let found = try names.flatMap { name in
      let presence = container.presence(name)
      let members = try faults.attempt("look who is present", path: presence.path) {
        try presence.members()
      }
      return (members ?? []).map { PresentProcess(name: name, member: $0) }
    }
    try environment.print(found, arguments, faults)
  }

  static let presenceWait = CommandDescription(
    name: "wait",
    abstract: "Wait until processes are present, or with --gone until nobody is, and print them.",
    discussion: """
      Processes that are present already count. The lines are as of 'presence list'. If the command has to \
      wait, it prints 'listening' on standard error.

      A COMMAND is run once, at the end of the wait, with the lines of --json on standard input. Its \
      environment has WORMHOLE_IDENTIFIER, the name, and the exit status is its own.
      """,
    arguments: [
      .presenceName, .value("count", .count, standard: "1", help: "Wait for at least this many."),
      .flag("gone", help: "Wait until no process is present."),
      .timeout, .readyDescriptor, .jsonLines,
      .command("Run at the end of the wait, instead of printing the lines."),
    ]
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let name = arguments.requiredText("name")
    let (isGone, count) = (arguments.has("gone"), arguments.count("count") ?? 1)
    // Without a container, no process is present.
    if isGone, try arguments.container.existing() == nil {
      return try environment.end([], arguments)
    }
    let opened = try arguments.container.openToListen(until: deadline, environment)
    let presence = opened.container.presence(name)
    let looks = Backlog<[PresenceMember]>.latest { _ in true }
    let observation = try presence.observe(
      startsWithCurrent: true, calling: Blocking.queue()
    ) { looks.add($0) }
    try withExtendedLifetime(observation) {
      // An immediate look first, because the observation may come too late for the deadline.
      var look: [PresenceMember]? = try presence.members()
      var hasReported = opened.isNew
      while let members = look {
        if isGone, members.isEmpty { return try environment.end([], arguments) }
        if !isGone, members.count >= count {
          return try environment.end(members.map { .init(name: name, member: $0) }, arguments)
        }
        if !hasReported, deadline > .now {
          environment.reportIfPolling(observation.detection, name)
          environment.reportListening()
          hasReported = true
        }
        look = looks.next(until: deadline)
      }
      throw ExitStatus.deadline
    }
  }
  .refusing { $0.conflict(of: "gone", "count") }

  static let presenceEnter = CommandDescription(
    name: "enter",
    abstract: "Announce this process under a name while a command runs.",
    discussion: """
      Others see this process from before COMMAND begins until it has ended, with all that it has started, \
      apart from a daemon (see 'lock'). If this process is killed, COMMAND is killed with it. The exit status is COMMAND's. Its environment has WORMHOLE_IDENTIFIER, \
      the name.
      Any number may be present under one name; for one at a time, see 'lock --name'.
      """,
    arguments: [
      .presenceName,
      .value("content", .text, named: "json", help: "A small value for readers, as JSON."),
      .command(help: "Runs while this process is present."),
    ]
  ) { arguments, environment in
    let name = arguments.requiredText("name")
    let command = try arguments.requiredCommand()
    let content = try arguments.text("content").map {
      try JSONInput.read(Array($0.utf8), source: "the content")
    }
    let presence = try arguments.container.open().presence(name)
    // Received from before the start of the command: a signal that arrives meanwhile is not lost.
    let interruption = try Interruption(quits: true, adopts: true)
    try environment.run(
      command, as: presence.enter(content: content), isAlone: false, interruption)
  }
}

extension ArgumentDescription {
  static let presenceName = operand("name", .live(.presence), help: "The name; any text.")
}

private struct PresentProcess: Listed {
  let name: String
  let member: PresenceMember

  static let head = ["PRESENT AS", "PROCESS", "CONTENT"]

  var cells: [String] {
    let role = member.isExclusive ? ", alone" : ""
    return [name, member.sinceText + role, member.content?.shortText() ?? "-"]
  }

  func encode(to encoder: any Encoder) throws {
    try member.encode(to: encoder)
    try (["name": name] as JSONObject).encode(to: encoder)
  }
}

extension CommandEnvironment {
  /// Ends a wait: prints the processes that it found, or runs the command of the line.
  fileprivate func end(_ found: [PresentProcess], _ arguments: ParsedArguments) throws {
    guard arguments.tail != nil else {
      return found.isEmpty ? () : try print(found, arguments)
    }
    let name = arguments.requiredText("name")
    let lines = try found.map { try JSONWriter.string($0, .wholeSeconds) + "\n" }.joined()
    try arguments.hand(
      bytes: Array(lines.utf8), titled: name.quoted, self,
      variables: CommandVariable.common(identifier: name, time: nil, sender: nil)
    ).end()
  }

  /// Runs a command while this process is present, and ends the presence.
  ///
  /// - Parameter isAlone: Whether it may run only as long as the registration has the exclusive role.
  /// - Throws: the command's status; an error if the role was lost meanwhile.
  func run(
    _ command: ExternalCommand, as registration: PresenceRegistration, isAlone: Bool,
    _ interruption: Interruption
  ) throws {
    defer { registration.close() }
    let name = registration.presence.name
    let termination = try withoutTimeLimit {
      try command.run(
        variables: [CommandVariable.identifier: name],
        under: isAlone ? RoleWatch(registration) : nil, interruption)
    }
    if let failure = command.failure(termination) { report(failure) }
    try ExitStatus(termination).end()
  }
}
