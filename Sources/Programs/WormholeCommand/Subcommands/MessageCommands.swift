import AppGroup
import PropertyLists
import Synchronization

extension CommandDescription {
  static let send = CommandDescription(
    name: "send",
    abstract: "Publish a message.",
    discussion: """
      The message replaces the last one with this identifier in one step: a reader sees the old one \
      or the new one, whole.

      With --expires the message is gone after that time for every reader, as if it was cleared. The \
      time is told by the clock of the day.

      A word that is no JSON is a string: 'send greeting hello'.
      """,
    positionals: [.identifier, .json("message")],
    options: OptionDescription.valueSources + [
      .value("expires", "seconds", .seconds, help: "Without it, the message stays until the next."),
      .durable("the message"),
    ], problem: ParsedArguments.valueProblem
  ) { arguments, environment in
    let identifier = arguments.requiredText("identifier")
    let message = try arguments.value(environment, "the message")
    try arguments.container.open().value(identifier).replace(
      with: message, durability: arguments.durability,
      expiresAfter: arguments.seconds("expires"))
  }

  static let read = CommandDescription(
    name: "read",
    abstract: "Print the latest message; exit status 1 if there is none.",
    discussion: """
      With --envelope a line is {"expires": ..., "identifier": ..., "message": ..., "publisher": \
      {"date": ..., "peer": ..., "process": ..., "program": ...}}: the process that sent the message, \
      and when. "expires" is left out for a message that does not expire, "peer" for a process that \
      was none, and "publisher" for a file that another kind of program wrote.
      """,
    positionals: [.identifier],
    options: [
      .flag("envelope", help: "Print the message with the process that sent it, and when."),
      .flag("raw", help: "Print a string as its text, and data as its bytes, not as JSON."),
      OutputFormat.option,
    ]
  ) { arguments, environment in
    let identifier = arguments.requiredText("identifier")
    let snapshot = try arguments.container.openExisting()?.value(identifier).snapshot()
    guard let snapshot, let message = try snapshot.propertyList() else {
      throw CommandError(
        verb: "read", object: identifier.quoted, reason: "there is no such message", status: .no)
    }
    let content =
      arguments.has("envelope") ? snapshot.envelope(of: message, identifier) : message
    try environment.print(
      arguments.has("raw")
        ? content.rawBytes(of: identifier.quoted)
        : arguments.outputFormat.bytes(content, of: identifier.quoted))
  }

  static let clear = CommandDescription(
    name: "clear",
    abstract: "Remove messages.",
    positionals: [
      PositionalDescription(
        name: "identifier", help: "The names of the messages; any text.",
        kind: .live(.messages),
        isOptional: true, isRepeating: true)
    ],
    options: [.flag("all", help: "Remove every message of the container.")]
  ) { arguments, environment in
    guard let container = try arguments.container.openExisting() else { return }
    let identifiers =
      arguments.has("all") ? try container.valueIdentifiers() : arguments.texts("identifier")
    var status = ExitStatus.done
    for identifier in identifiers {
      do {
        try container.value(identifier).remove()
      } catch let error as AppGroupError {
        // A message that cannot be removed does not keep the others from being removed.
        environment.tell(error)
        status = ExitStatus(of: error)
      }
    }
    try status.end()
  }
  .refusing { arguments in
    switch (arguments.has("all"), arguments.texts("identifier").isEmpty) {
    case (true, false): "--all and identifiers exclude each other"
    case (false, true): "missing expected argument '<identifier>': name messages, or give --all"
    case (true, true), (false, false): nil
    }
  }

  static let update = CommandDescription(
    name: "update",
    abstract: "Change a message with a command; no change of another process is lost.",
    discussion: """
      COMMAND reads the message on standard input, null if there is none, and prints the new one, null \
      to remove it. If it fails, nothing changes, and its exit status is that of 'update'. It is killed \
      together with 'update'.

      'update' waits for others for up to 60 seconds. If it is stopped, or COMMAND takes longer than \
      30 seconds, others may take the lease over; COMMAND then runs again with the newer message, and \
      WORMHOLE_ATTEMPT in its environment is 2, 3 and so on.
      """,
    positionals: [.identifier],
    options: [.durable("the new message")],
    tail: TailDescription(
      name: "command", help: "Reads the message and prints the new one, both as JSON.")
  ) { arguments, environment in
    let identifier = arguments.requiredText("identifier")
    let command = ExternalCommand(words: arguments.tail ?? [])
    let attempts = Atomic(0)
    try arguments.container.open().value(identifier).update(
      durability: arguments.durability, until: .now + .seconds(60), term: .seconds(30)
    ) { message in
      let attempt = attempts.wrappingAdd(1, ordering: .relaxed).newValue
      message = try environment.withoutTimeLimit {
        let input = try message.map { try OutputFormat.json.bytes($0, of: identifier.quoted) }
        let outcome = try command.run(
          input: input ?? Array("null\n".utf8), variables: ["WORMHOLE_ATTEMPT=\(attempt)"],
          collectsOutput: true)
        if let failure = command.failure(outcome.termination) {
          throw CommandError(
            verb: "update", object: identifier.quoted,
            reason: "\(failure); the message is unchanged", status: ExitStatus(outcome.termination))
        }
        return try JSONInput.readOptional(
          outcome.output, source: "the output of \(command.words[0]) for \(identifier.quoted)")
      }
    }
  }
}

extension ValueSnapshot {
  /// A message with what its publication tells. Keys are only ever added.
  func envelope(of message: PropertyListValue, _ identifier: String) -> PropertyListValue {
    .object([
      "expires": expiration, "identifier": identifier, "message": message,
      "publisher": publisher?.propertyList,
    ])
  }
}

extension Publisher {
  /// Keys are only ever added.
  var propertyList: PropertyListValue {
    .object(["date": date, "peer": peer, "process": processID, "program": program])
  }
}
