import AppGroup
import PeerConnectivity

struct PeerReceiveCommand: Subcommand {
  static let description = CommandDescription(
    name: "receive",
    abstract: "Print the messages for a peer, a line each, or give each to a command.",
    discussion: """
      A message is processed when its line is written, or when the command, which gets it on \
      standard input, ends with status 0. With status 65 the command refuses the message for good: \
      its sender learns that it failed, the receiving goes on, and the exit status is 65 in the end. \
      With any other failure the receiving ends with the command's exit status (126 and 127 when it \
      cannot be run, 128 and the signal's number when it was killed), and the message is delivered \
      again to the next that receives. The same happens when this process is killed in the middle, \
      and the command is killed with it.

      The command finds in its environment WORMHOLE_SENDER, WORMHOLE_TRANSFER (the message's id), \
      WORMHOLE_PEER, and WORMHOLE_REDELIVERY: 1 for a message that was delivered before, and \
      perhaps handled, else 0. With --envelope a line is {"id": ..., "message": ..., \
      "redelivery": ..., "sender": ..., "sent": ...}.

      One process receives for a name at a time: another is waited for up to 10 seconds, and one \
      that is stopped is replaced. The command says 'listening' on standard error once it receives. \
      SIGINT, SIGTERM and SIGHUP are passed on to the command, and end the receiving after it.
      """,
    positionals: [.ownName],
    options: [
      .count, .timeout,
      .flag("envelope", help: "Print each message with its sender, its id and when it was sent."),
      OutputFormat.option,
    ],
    tail: TailDescription(
      name: "command",
      help: "Run for each message, which it gets on standard input, instead of printing it.",
      isOptional: true))

  static let commandPath = ["peer", "receive"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let deadline = arguments.deadline()
    let session = try PeerSession(
      arguments.container.open(), name: arguments.requiredText("name"))
    let interruption = try Interruption(endsWithReader: arguments.tail == nil)
    let found = try interruption.wait {
      try session.receiveMessages(until: min(deadline, .now + .seconds(10)))
    }
    guard let receiver = found else { return .no }
    defer { receiver.end() }
    environment.tellListening(endsWithReader: false)
    let output = PeerMessageOutput(arguments, interruption, environment)
    return try Taking(count: arguments.count("count"), interruption: interruption).each {
      try receiver.next(until: deadline)
    } handle: { message in
      try output.put(message)
    }
  }
}
