enum ClearCommand {
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
}
