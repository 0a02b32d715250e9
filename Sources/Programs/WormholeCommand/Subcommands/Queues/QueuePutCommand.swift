import AppGroup
import PropertyLists

extension CommandDescription {
  static let queuePut = CommandDescription(
    name: "put",
    abstract: "Put an entry into a queue, and print its id.",
    discussion: """
      The command returns when the entry is stored; it then outlives this process. The entries of one \
      sender are delivered in their order.
      """,
    positionals: [.queueName, .json("entry")],
    options: OptionDescription.valueSources + [
      .from, .durable("it"), .expires,
      .value(
        "key", "key", .identifier,
        help: "Replace a waiting entry of this sender with the same key."),
      .value("delay", "seconds", .seconds, help: "Let nobody take it before."),
      .value(
        "priority", "priority", .choice(EntryPriority.allCases.map(\.word)), standard: "standard",
        help: "Entries of a higher priority are delivered first."),
      .wait, .timeout,
    ],
    problem: ParsedArguments.messageProblem
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let value = try arguments.value(environment, "the entry")
    let waits = arguments.text("wait") != nil
    let sender = try arguments.container.open().queue(arguments.requiredText("name"))
      .sender(arguments.sessionName(environment))
    let id = try sender.enqueue(
      value, durability: arguments.durability, expires: arguments.seconds("expires"),
      key: arguments.text("key"), keepsReceipt: waits, receiptTerm: .dayAfterProcessing,
      delay: arguments.seconds("delay"), priority: arguments.priority)
    try environment.print(line: id.description)
    guard waits else { return }
    let status = try sender.finalStatus(of: id, until: deadline)
    // The exit status tells the outcome, so its record is not needed any more.
    if status.isEnd { try sender.forget(id) }
    try status.end(of: "the entry \(id)", environment)
  }
}

extension ParsedArguments {
  fileprivate var priority: EntryPriority {
    EntryPriority.allCases.first { $0.word == text("priority") } ?? .standard
  }
}
