import Wormhole
import WormholePropertyLists
import WormholeSystem

extension CommandDescription {
  static let presenceEnter = CommandDescription(
    name: "enter",
    abstract: "Be present under a name while a command runs.",
    discussion: """
      Others see this process from before COMMAND begins until it has ended. If this process is killed, \
      COMMAND is killed with it. The exit status is COMMAND's. Its environment has WORMHOLE_IDENTIFIER, \
      the name.

      With --exclusive only one such process at a time is present; another one waits until it leaves or \
      dies. A process that is stopped may lose its role after 50 ms; when it goes on, its COMMAND is told \
      to end (SIGTERM), is killed a second later, and the exit status is 1. To keep others from something \
      that a stopped process may go on to do, use '\(ProgramName.called) lock'.

      COMMAND then has WORMHOLE_FENCE in its environment, a number that is larger with each process that \
      enters: with --while, 'send' and 'queue put' do nothing once another process has entered, and other \
      systems can refuse a smaller number than they have seen.

      On etcd a process that is cut off loses its role when its session ends (ttl=). Its COMMAND is told \
      to end after eight tenths of that time and killed after nine, before a successor's can begin.
      """,
    positionals: [.presenceName],
    options: [
      .value("content", "json", .text, help: "A small value for those who look, as JSON."),
      .flag("exclusive", help: "Be the only one that has entered so."),
      .value(
        "timeout", "seconds", .seconds, standard: "10",
        help: "With --exclusive, wait this long for another process that is present."),
    ],
    tail: TailDescription(name: "command", help: "Runs while this process is present.")
  ) { arguments, environment in
    let name = arguments.requiredText("name")
    let command = ExternalCommand(words: arguments.tail ?? [])
    let content = try arguments.text("content").map {
      try JSONInput.read(Array($0.utf8), source: "the content")
    }
    let presence = try arguments.container.open().presence(name)
    // Received from before the start of the command: a signal that arrives meanwhile is not lost.
    let interruption = try Interruption(quits: true)
    let registration: PresenceRegistration
    if arguments.has("exclusive") {
      let deadline = ContinuousClock.now + (arguments.seconds("timeout") ?? .seconds(10))
      let entered = try interruption.wait {
        try presence.enterExclusively(content: content, until: deadline)
      }
      guard let entered else { throw ExitStatus.no }
      registration = entered
    } else {
      registration = try presence.enter(content: content)
    }
    defer { registration.close() }
    try runPresent(
      command, as: name, registration, isAlone: arguments.has("exclusive"), interruption,
      environment)
  }
  .refusing { arguments in
    arguments.text("timeout") != nil && !arguments.has("exclusive")
      ? "--timeout needs --exclusive: without it the command does not wait" : nil
  }
}

/// Runs a command while this process is present.
///
/// - Parameter isAlone: Whether it may run only as long as the registration has the exclusive role.
/// - Throws: the status with which the command ended; an error if the role was lost meanwhile.
func runPresent(
  _ command: ExternalCommand, as name: String, _ registration: PresenceRegistration, isAlone: Bool,
  _ interruption: Interruption, _ environment: CommandEnvironment
) throws {
  let termination: Termination
  do {
    let role = isAlone ? try RoleWatch(registration) : nil
    let child = try command.start(
      variables: [CommandVariable.assignment(CommandVariable.identifier, name)], under: role)
    var output = CollectedOutput(nil)
    termination = try environment.withoutTimeLimit {
      try interruption.wait(forEndOf: child, &output, under: role)
    }
    try role?.check()
  } catch let error as Errno {
    throw command.error(error)
  }
  if let failure = command.failure(termination) { environment.tell(failure) }
  try ExitStatus(termination).end()
}
