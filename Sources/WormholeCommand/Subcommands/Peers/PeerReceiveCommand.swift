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

      With --retries such a failure does not end the receiving: the message is given back, and \
      delivered again after a pause that doubles each time, up to an hour, while others are delivered. \
      When it was delivered once and so often again, also to receivers that were killed, it has \
      failed: its sender learns it, and it is kept: 'status' lists it, 'peer retry' sends it again, and \
      'peer forget' forgets it.

      The command finds in its environment WORMHOLE_SENDER, WORMHOLE_TRANSFER (the message's id), \
      WORMHOLE_PEER, and WORMHOLE_REDELIVERY: 1 for a message that was delivered before, and \
      perhaps handled, else 0; WORMHOLE_DELIVERIES says how often it was, this time included. With \
      --envelope a line is {"deliveries": ..., "id": ..., "message": ..., "redelivery": ..., \
      "sender": ..., "sent": ...}.

      One process receives for a name at a time: another is waited for up to 10 seconds, and one \
      that is stopped is replaced. The command says 'listening' on standard error once it receives. \
      SIGINT, SIGTERM and SIGHUP are passed on to the command, and end the receiving after it.
      """,
    positionals: [.ownName],
    options: [
      .count, .timeout,
      .flag("envelope", help: "Print each message with its sender, its id and when it was sent."),
      OutputFormat.option,
      .value(
        "retries", "n", .unsigned,
        help: "Deliver a message that the command fails on so often again; then it has failed."),
      .value(
        "backoff", "seconds", .seconds, standard: "1",
        help: "The pause before the first of them."),
    ],
    tail: TailDescription(
      name: "command",
      help: "Run for each message, which it gets on standard input, instead of printing it.",
      isOptional: true),
    problem: { arguments in
      guard arguments.tail == nil, arguments.text("retries") != nil else { return nil }
      return "--retries is for a command: what is printed is not delivered again"
    })

  static let commandPath = ["peer", "receive"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let deadline = arguments.deadline()
    let session = try PeerSession(
      arguments.container.open(), name: arguments.requiredText("name"))
    let interruption = try Interruption(endsWithReader: arguments.tail == nil)
    let found = try interruption.wait {
      try session.receiveMessages(
        until: min(deadline, .now + .seconds(10)), maximumDeliveries: arguments.maximumDeliveries)
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

extension ParsedArguments {
  /// What `--retries` says; nil for any number.
  var maximumDeliveries: Int? {
    unsigned("retries").map { Int(min($0, UInt64(Int32.max))) + 1 }
  }
}
