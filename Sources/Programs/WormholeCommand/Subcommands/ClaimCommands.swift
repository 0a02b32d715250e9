import FoundationEssentials
import Wormhole
import WormholePropertyLists
import WormholeSystem

extension CommandDescription {
  static let claim = CommandDescription(
    name: "claim",
    abstract: "Have a name until a time, across many short commands.",
    discussion: """
      No process has to live: the claim belongs to a text, --as, and lasts until its time is over, until \
      '\(ProgramName.called) release', or until the process of --pid ends. Getting it again with the same text renews it; \
      the process of --pid remains unless another is named. A lock that lasts as long as one command is '\(ProgramName.called) lock'.

      It prints the fence: a number that is larger with each holder, and the same when a holder renews. \
      As \(CommandVariable.fence) it makes a change conditional:
        export \(CommandVariable.fence)=$(\(ProgramName.called) claim build --as agent-7 --for 30m --pid $$)
        \(ProgramName.called) send state '"building"' --while build

      If another holder has it, the exit status is 1, and standard error says who, since when, and until when.

      Without a NAME, it prints the claims that somebody has. With --json a line is {"fence": ..., "name": ..., \
      "process": ..., "since": ..., "until": ..., "who": ...}.
      """,
    arguments: [
      .optional("name", .live(.claim), help: "The name; any text."), .holder,
      .value(
        "for", .duration, standard: "30m", help: "How long it lasts from now."),
      .value(
        "pid", .unsigned, named: "process",
        help: "End it together with this process of this machine, such as your shell ($$)."),
      .value(
        "timeout", letter: "w", .duration, standard: "0", help: "Wait this long for another holder."
      ),
      .jsonLines,
    ]
  ) { arguments, environment in
    guard let name = arguments.text("name") else { return try environment.printClaims(arguments) }
    let claim = try arguments.container.open().claim(name)
    do {
      let fence = try claim.acquire(
        as: environment.holder(arguments), for: arguments.duration("for") ?? Claim.standardTime,
        whileRunning: arguments.unsigned("pid").map { Int32(clamping: $0) },
        until: arguments.deadline())
      try environment.print(line: "\(fence.number)")
    } catch let error as WormholeError where error.code == .timedOut {
      throw CommandError.no("get the claim \(name.quoted)", because: error.reason)
    }
  }
  .refusing { arguments in
    if let process = arguments.unsigned("pid"), Int32(exactly: process) == nil {
      return "no process has the number \(process) of --pid"
    }
    let given = ["as", "for", "pid", "timeout"].first(where: arguments.isGiven)
    return arguments.text("name") == nil ? given.map { "--\($0) needs a NAME" } : nil
  }

  static let release = CommandDescription(
    name: "release",
    abstract: "Give a claim up.",
    discussion: "The exit status is 1 if the holder does not have the claim.",
    arguments: [.operand("name", .live(.claim), help: "The name of the claim."), .holder]
  ) { arguments, environment in
    let name = arguments.requiredText("name")
    let who = environment.holder(arguments)
    let claim = try arguments.container.openExisting()?.claim(name)
    guard try claim?.release(as: who) != true else { return }
    let holder = try claim?.holder()
    throw CommandError.no(
      "release the claim \(name.quoted)",
      because: holder.map { "\($0.who.quoted) has it, not \(who.quoted)" }
        ?? "nobody has it")
  }
}

extension ArgumentDescription {
  fileprivate static let holder = value(
    "as", .identifier, named: "who",
    help: "The holder; any text. By default the user, the machine and the session of this terminal."
  )
}

extension CommandEnvironment {
  fileprivate func holder(_ arguments: ParsedArguments) -> String {
    if let who = arguments.text("as") { return who }
    let user = variable("USER") ?? "user \(Program.effectiveUser)"
    let session = ProcessStatus.of(Program.processID)?.session ?? 0
    return "\(user)@\(Program.hostName), session \(session)"
  }

  fileprivate func printClaims(_ arguments: ParsedArguments) throws {
    guard let container = try arguments.container.openExisting() else { throw ExitStatus.no }
    var faults = NameFaults()
    try print(container.claims(&faults).map(NamedClaim.init), arguments, faults)
  }
}
