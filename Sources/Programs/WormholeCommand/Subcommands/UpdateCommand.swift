import AppGroup
import PropertyLists
import Synchronization

struct UpdateCommand: Subcommand {
  static let description = CommandDescription(
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
      name: "command", help: "Reads the message and prints the new one, both as JSON."))

  /// How long the command may take before others may take the lease over.
  private static let term: Duration = .seconds(30)
  /// How long to wait for others, and to retry after lost leases.
  private static let patience: Duration = .seconds(60)

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let identifier = arguments.requiredText("identifier")
    let command = ExternalCommand(words: arguments.tail ?? [])
    let attempts = Atomic(0)
    try arguments.container.open().value(identifier).update(
      durability: arguments.durability, until: .now + Self.patience, term: Self.term
    ) { message in
      let attempt = attempts.wrappingAdd(1, ordering: .relaxed).newValue
      message = try environment.withoutTimeLimit {
        try Self.change(message, identifier, command, attempt: attempt)
      }
    }
    return .done
  }

  private static func change(
    _ message: PropertyListValue?, _ identifier: String, _ command: ExternalCommand, attempt: Int
  ) throws -> PropertyListValue? {
    let input = try message.map { try OutputFormat.json.bytes($0, of: identifier.quoted) }
    let outcome = try command.run(
      input: input ?? Array("null\n".utf8), variables: ["\(attemptVariable)=\(attempt)"],
      collectsOutput: true)
    if let failure = command.failure(outcome.termination) {
      throw CommandError(
        verb: "update", object: identifier.quoted, reason: "\(failure); the message is unchanged",
        status: ExitStatus(outcome.termination))
    }
    return try JSONInput.readOptional(
      outcome.output, source: "the output of \(command.words[0]) for \(identifier.quoted)")
  }

  /// Tells the command the number of its run, counted from 1.
  static let attemptVariable = "WORMHOLE_ATTEMPT"
}
