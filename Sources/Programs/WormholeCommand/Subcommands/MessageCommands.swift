import AppGroup

extension CommandDescription {
  static let send = CommandDescription(
    name: "send",
    abstract: "Publish a message.",
    discussion: """
      The message replaces the last one with this identifier in one step: a reader sees the old one \
      or the new one, whole.
      """,
    positionals: [.identifier, .json("message")],
    options: [.durable("the message")]
  ) { arguments, environment in
    let identifier = arguments.requiredText("identifier")
    let message = try environment.value(arguments.text("value"), "the message")
    try arguments.container.open().value(identifier).replace(
      with: message, durability: arguments.durability)
    return .done
  }

  static let read = CommandDescription(
    name: "read",
    abstract: "Print the latest message; exit status 1 if there is none.",
    positionals: [.identifier],
    options: [OutputFormat.option]
  ) { arguments, environment in
    let identifier = arguments.requiredText("identifier")
    guard let message = try arguments.container.openExisting()?.value(identifier).read() else {
      throw CommandError(
        verb: "read", object: identifier.quoted, reason: "there is no such message", status: .no)
    }
    try environment.print(arguments.outputFormat.bytes(message, of: identifier.quoted))
    return .done
  }

  static let clear = CommandDescription(
    name: "clear",
    abstract: "Remove messages.",
    positionals: [
      PositionalDescription(
        name: "identifier", help: "The names of the messages; any text.", kind: .identifier,
        isOptional: true, isRepeating: true)
    ],
    options: [.flag("all", help: "Remove every message of the container.")]
  ) { arguments, environment in
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
  .refusing { arguments in
    switch (arguments.has("all"), arguments.texts("identifier").isEmpty) {
    case (true, false): "--all and identifiers exclude each other"
    case (false, true): "missing expected argument '<identifier>': name messages, or give --all"
    case (true, true), (false, false): nil
    }
  }
}
