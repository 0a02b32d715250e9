import AppGroup

struct SendCommand: Subcommand {
  static let description = CommandDescription(
    name: "send",
    abstract: "Publish a message.",
    discussion: """
      The message replaces the last one with this identifier in one step: a reader sees the old one \
      or the new one, whole.
      """,
    positionals: [
      .identifier,
      PositionalDescription(
        name: "value",
        help: "The message, as JSON; without it, or with '-', it is read from standard input.",
        isOptional: true),
    ],
    options: [.durable("the message")])

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let identifier = arguments.requiredText("identifier")
    let message = try environment.value(arguments.text("value"), "the message")
    try arguments.container.open().value(identifier).replace(
      with: message, durability: arguments.durability)
    return .done
  }
}

struct ReadCommand: Subcommand {
  static let description = CommandDescription(
    name: "read",
    abstract: "Print the latest message; exit status 1 if there is none.",
    positionals: [.identifier],
    options: [OutputFormat.option])

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let identifier = arguments.requiredText("identifier")
    guard let message = try arguments.container.openExisting()?.value(identifier).read() else {
      throw CommandError(
        verb: "read", object: identifier.quoted, reason: "there is no such message", status: .no)
    }
    try environment.print(arguments.outputFormat.bytes(message, of: identifier.quoted))
    return .done
  }
}

struct ClearCommand: Subcommand {
  static let description = CommandDescription(
    name: "clear",
    abstract: "Remove messages.",
    positionals: [
      PositionalDescription(
        name: "identifier", help: "The names of the messages; any text.", kind: .identifier,
        isOptional: true, isRepeating: true)
    ],
    options: [.flag("all", help: "Remove every message of the container.")],
    problem: { arguments in
      switch (arguments.has("all"), arguments.texts("identifier").isEmpty) {
      case (true, false): "--all and identifiers exclude each other"
      case (false, true): "missing expected argument '<identifier>': name messages, or give --all"
      case (true, true), (false, false): nil
      }
    })

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    guard let container = try arguments.container.openExisting() else { return .done }
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
    return status
  }
}
