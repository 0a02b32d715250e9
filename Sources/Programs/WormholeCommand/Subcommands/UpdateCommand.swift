import AppGroup
import PropertyLists
import Synchronization

extension CommandDescription {
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
            reason: "\(failure); the message is unchanged",
            status: ExitStatus(outcome.termination))
        }
        return try JSONInput.readOptional(
          outcome.output, source: "the output of \(command.words[0]) for \(identifier.quoted)")
      }
    }
    return .done
  }
}
