import AppGroup
import Dispatch
import PropertyLists

extension CommandDescription {
  static let listen = CommandDescription(
    name: "listen",
    abstract: "Print messages as they arrive, one line each.",
    discussion: """
      With several identifiers a line is {"identifier": ..., "message": ...}; with --envelope it is \
      that of 'read --envelope'. The command prints \
      'listening' on standard error; from then on it misses nothing. After a burst of messages the \
      last one is always printed, the earlier ones perhaps. The removal of a message prints nothing. \
      If the group has no container yet, the command waits for its first use and makes nothing.

      With a COMMAND, a failure is reported and listening goes on; in the end the exit status is that \
      of the last COMMAND that failed. COMMAND ends together with this program. Without one, \
      listening ends when nobody reads the lines any more.
      """,
    positionals: [
      PositionalDescription(
        name: "identifier", help: "The names of the messages; any text.",
        kind: .live(.messages),
        isRepeating: true)
    ],
    options: [
      .count, .timeout, .readyDescriptor,
      .flag("envelope", help: "Print each message with the process that sent it, and when."),
      .flag("current", help: "Begin with the current message, if there is one."),
      OutputFormat.option,
    ],
    tail: TailDescription(
      name: "command",
      help: "Run for each message, with the message on standard input, instead of printing it.",
      isOptional: true)
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let command = arguments.tail.map(ExternalCommand.init)
    // A command that is run for each message shares our standard output, and notices the end itself.
    let printsLines = command == nil
    let opened = try arguments.container.openToListen(
      until: deadline, environment, endsWithReader: printsLines)
    let identifiers = arguments.texts("identifier")
    let arrivals = Backlog<(index: Int, snapshot: ValueSnapshot)>.latest { $0.index }
    let queue = DispatchQueue(label: "wormhole.listen")
    let observations = try identifiers.enumerated().map { index, identifier in
      try opened.container.value(identifier).observe(
        startsWithCurrent: arguments.has("current") || opened.isNew, on: queue
      ) { arrivals.add((index, $0)) }
    }
    for (observation, identifier) in zip(observations, identifiers) {
      environment.tellIfPolling(observation.detection, identifier)
    }
    if !opened.isNew { environment.tellListening(endsWithReader: printsLines) }
    try withExtendedLifetime(observations) {
      try arguments.handleEach(of: arrivals.next, until: deadline) { arrival in
        let identifier = identifiers[arrival.index]
        let message: PropertyListValue?
        do {
          message = try arrival.snapshot.propertyList()
        } catch let error as AppGroupError {
          // A message that cannot be read is reported, and does not count.
          environment.tell(error)
          return nil
        }
        // The removal of a message is not a message.
        guard let message else { return nil }
        let content: PropertyListValue =
          arguments.has("envelope")
          ? arrival.snapshot.envelope(of: message, identifier)
          : identifiers.count > 1
            ? ["identifier": .string(identifier), "message": message] : message
        return try handle(content, identifier, arguments.outputFormat, command, environment)
      }
    }
  }
}

/// Prints a message, or gives it to the command. A command that runs at the deadline may finish.
private func handle(
  _ content: PropertyListValue, _ identifier: String, _ format: OutputFormat,
  _ command: ExternalCommand?, _ environment: CommandEnvironment
) throws -> ExitStatus {
  let bytes: [UInt8]
  do {
    bytes = try format.bytes(content, of: identifier.quoted)
  } catch let error as CommandError {
    environment.tell(error)
    return .no
  }
  guard let command else {
    try environment.print(bytes)
    return .done
  }
  let termination = try command.run(input: bytes).termination
  if let failure = command.failure(termination) {
    environment.tell("\(failure), given \(identifier.quoted)")
  }
  return ExitStatus(termination)
}
