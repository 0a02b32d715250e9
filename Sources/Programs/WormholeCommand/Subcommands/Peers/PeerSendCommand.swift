import AppGroup
import PeerConnectivity

struct PeerSendCommand: Subcommand {
  static let description = CommandDescription(
    name: "send",
    abstract: "Queue a message, which is delivered when the peer receives.",
    discussion: """
      The command returns when the message is stored, and prints its id, for 'peer cancel'. The message \
      is delivered until it is processed, in the order of sending. 'peer outstanding' lists it as long \
      as it waits; with --receipt also its outcome.
      """,
    positionals: [
      .peer,
      PositionalDescription(
        name: "value",
        help: "The message, as JSON; without it, or with '-', it is read from standard input.",
        isOptional: true),
    ],
    options: [
      .from, .durable("it"), .expires,
      .value(
        "key", "key", .identifier,
        help: "Replace a waiting message of this sender with the same key."),
      .flag("urgent", help: "Start a peer that is registered to be started for urgent messages."),
      .receipt, .wait, .timeout,
    ],
    problem: ParsedArguments.waitProblem)

  static let commandPath = ["peer", "send"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let deadline = arguments.deadline()
    let message = try environment.value(arguments.text("value"), "the message")
    let waits = arguments.text("wait") != nil
    let transfer = try arguments.openSession(environment).enqueue(
      message, to: arguments.requiredText("peer"),
      options: PeerMessageOptions(
        durability: arguments.durability,
        expiry: arguments.seconds("expires"), key: arguments.text("key"),
        isUrgent: arguments.has("urgent"),
        keepsReceipt: waits || arguments.has("receipt"), receiptTerm: .dayAfterProcessing))
    try environment.print(line: transfer.id)
    guard waits else { return .done }
    let status = try transfer.finalStatus(until: deadline)
    // The exit status tells the outcome, so its record is not needed any more.
    if status.isEnd { try transfer.removeReceipt() }
    return status.exitStatus(of: "the message \(transfer.id)", environment)
  }
}
