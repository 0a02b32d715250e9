import AppGroup

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
      case (false, true): "missing expected argument '<identifier>': name messages, or say --all"
      case (true, true), (false, false): nil
      }
    })

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    guard let container = try arguments.container.openExisting() else { return .done }
    let identifiers =
      arguments.has("all")
      ? try container.valueIdentifiers()
      : arguments.texts("identifier")
    var status = ExitStatus.done
    for identifier in identifiers {
      do {
        try container.value(identifier).remove()
      } catch let error as AppGroupError {
        // One that cannot be removed keeps none of the others.
        environment.tell(error)
        status = error.exitStatus
      }
    }
    return status
  }
}
