import Wormhole
import WormholePropertyLists

extension CommandDescription {
  static let queuePut = CommandDescription(
    name: "put",
    abstract: "Put an entry into a queue, and print its id.",
    discussion: """
      The command returns when the entry is stored; it then outlives this process. The entries of one \
      sender are delivered in their order. With --lines each line is an entry as soon as it comes.
      """,
    positionals: [.queueName, .json("entry")],
    options: OptionDescription.valueSources + [
      .lines, .from, .durable("it"), .expires,
      .value(
        "key", "key", .identifier,
        help: "Replace a waiting entry of this sender with the same key."),
      .value("delay", "seconds", .seconds, help: "Let nobody take it before."),
      .value(
        "priority", "priority", .choice(EntryPriority.allCases.map(\.word)), standard: "standard",
        help: "Entries of a higher priority are delivered first."),
      .whileRole, .wait, .timeout,
    ],
    problem: ParsedArguments.messageProblem
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let waits = arguments.text("wait") != nil
    // Opened for the first value: where there is none, no container is made.
    var opened: Queue.Sender?
    try arguments.forEachValue(environment, "the entry") { value in
      let sender = try opened ?? arguments.queueSender(environment)
      opened = sender
      try arguments.underRole(environment, in: sender.queue.container) { fence in
        let id = try sender.enqueue(
          value, durability: arguments.durability, expires: arguments.seconds("expires"),
          key: arguments.text("key"), keepsReceipt: waits, receiptTerm: .dayAfterProcessing,
          delay: arguments.seconds("delay"), priority: arguments.priority, while: fence)
        try environment.print(line: id.description)
        guard waits else { return }
        let status = try sender.finalStatus(of: id, until: deadline)
        // The exit status tells the outcome, so its record is not needed any more.
        if status.isEnd { try sender.forget(id) }
        try status.end(of: "the entry \(id)", environment)
      }
    }
  }
}

extension ParsedArguments {
  fileprivate func queueSender(_ environment: CommandEnvironment) throws -> Queue.Sender {
    try container.open().queue(requiredText("name")).sender(sessionName(environment))
  }

  fileprivate var priority: EntryPriority {
    EntryPriority.allCases.first { $0.word == text("priority") } ?? .standard
  }
}
