import AppGroup
import PropertyLists
import SystemCalls

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
      to end (SIGTERM), and the exit status is 1. To keep others from something that a stopped process \
      may go on to do, use 'wormhole lock'.
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
    try runPresent(command, as: name, registration, interruption, environment)
  }
  .refusing { arguments in
    arguments.text("timeout") != nil && !arguments.has("exclusive")
      ? "--timeout needs --exclusive: without it the command does not wait" : nil
  }
}

/// - Throws: the status with which the command ended; an error if the registration was lost meanwhile.
private func runPresent(
  _ command: ExternalCommand, as name: String, _ registration: PresenceRegistration,
  _ interruption: Interruption, _ environment: CommandEnvironment
) throws {
  var loss: AppGroupError?
  let termination: Termination
  do {
    let child = try command.start(
      variables: [CommandVariable.assignment(CommandVariable.identifier, name)])
    var output = CollectedOutput(nil)
    termination = try environment.withoutTimeLimit {
      try interruption.wait(forEndOf: child, &output) {
        if loss == nil { loss = registration.loss }
        return loss != nil
      }
    }
  } catch let error as Errno {
    throw command.error(error)
  }
  if let loss {
    throw CommandError(
      verb: "stay", object: name.quoted, reason: "\(loss.reason); the command was told to end",
      status: .no)
  }
  if let failure = command.failure(termination) { environment.tell(failure) }
  try ExitStatus(termination).end()
}

extension PresenceRegistration {
  /// The error of a registration that another process has taken over.
  fileprivate var loss: AppGroupError? {
    do {
      try confirm()
      return nil
    } catch let error as AppGroupError where error.code == .leaseLost {
      return error
    } catch {
      // Too few descriptors, for example: the next check tells.
      return nil
    }
  }
}
