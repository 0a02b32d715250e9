import AppGroup

struct SendCommand: Subcommand {
  static let description = CommandDescription(
    name: "send",
    abstract: "Pass a message.",
    discussion: """
      The message takes the place of the last one with this identifier, in one step: a reader \
      sees the old one or the new one, whole.
      """,
    positionals: [
      .identifier,
      PositionalDescription(
        name: "value",
        help: "The message, as JSON; without it, or with '-', it is read from standard input.",
        isOptional: true),
    ],
    options: [
      .durable("the message")
    ])

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let identifier = arguments.requiredText("identifier")
    let message = try environment.value(arguments.text("value"), "the message")
    try arguments.container.open().value(identifier).replace(
      with: message, durability: arguments.durability)
    return .done
  }
}
