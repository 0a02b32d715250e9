import AppGroup
import Dispatch

struct ListenCommand: Subcommand {
  static let description = CommandDescription(
    name: "listen",
    abstract: "Print messages as they arrive, a line each.",
    discussion: """
      With several identifiers a line is {"identifier": ..., "message": ...}. The command says \
      'listening' on standard error once it cannot miss anything any more. After a burst of \
      messages the last one is always printed, those before it perhaps. That a message was cleared \
      is not told. A group that nobody has used yet is waited for, and nothing is made. A command \
      that fails is said to have failed; listening goes on, and in the end the exit status is that \
      of the last command that failed. The command ends with this program. Listening ends when \
      nobody reads the lines any more.
      """,
    positionals: [
      PositionalDescription(
        name: "identifier", help: "The names of the messages; any text.", kind: .identifier,
        isRepeating: true)
    ],
    options: [
      .count, .timeout,
      .flag("current", help: "Begin with the message that is there already."),
      OutputFormat.option,
    ],
    tail: TailDescription(
      name: "command",
      help: "Run for each message, which it gets on standard input, instead of printing it.",
      isOptional: true))

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let deadline = arguments.seconds("timeout").map { ContinuousClock.now + $0 }
    // A command that is run for each message has our standard output, and learns that by itself.
    let printsLines = arguments.tail == nil
    let found = try arguments.container.openToListen(
      until: deadline, environment, endsWithReader: printsLines)
    guard let opened = found else { return .deadline }
    let identifiers = arguments.texts("identifier")
    let arrivals = Arrivals<Snapshot>()
    let queue = DispatchQueue(label: "wormhole.listen")
    let observations = try identifiers.enumerated().map { index, identifier in
      try opened.container.value(identifier).observe(
        startsWithCurrent: arguments.has("current") || opened.isNew, on: queue
      ) { arrivals.put($0, at: index) }
    }
    for (observation, identifier) in zip(observations, identifiers) {
      environment.tellIfPolling(observation.detection, identifier)
    }
    if !opened.isNew { environment.tellListening(endsWithReader: printsLines) }
    let output = MessageOutput(arguments, environment)
    return try withExtendedLifetime(observations) {
      try output.deliver(
        arrivals, identifiers, count: arguments.count("count") ?? .max, until: deadline)
    }
  }
}
