enum ListenCommand {
  static let description = CommandDescription(
    name: "listen",
    abstract: "Print messages as they arrive, a line each.",
    discussion: """
      With several identifiers a line is {"identifier": ..., "message": ...}. The command says \
      'listening' on standard error once it cannot miss anything any more. After a burst of \
      messages the last one is always printed, those before it perhaps.
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
}
