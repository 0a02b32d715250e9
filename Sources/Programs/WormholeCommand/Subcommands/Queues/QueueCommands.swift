import Wormhole
import WormholePropertyLists

extension CommandDescription {
  /// The commands for queues: entries that wait until a process has handled them.
  static let queue = CommandDescription(
    name: "queue",
    abstract: "Put work into queues, and let any number of processes take it.",
    discussion: """
      An entry waits until a process takes it, and goes to one of those that take. It is delivered \
      again, marked, if that process ends before it has handled the entry. So no process can take an \
      entry and leave it to a later one to acknowledge it: 'queue take' keeps it for as long as its \
      COMMAND runs, and the end of COMMAND acknowledges or releases it.

      Queues work in a directory and on etcd. Those of peers have commands of their own: '\(ProgramName.called) help \
      peer'.
      """,
    subcommands: [
      .queuePut, .queueTake, .queuePeek, .queueList, .queueCancel, .queuePurge, .queueRetry,
      .queueForget,
    ])
}

extension ArgumentDescription {
  static let queueName = operand("name", .live(.queue), help: "The name of the queue; any text.")

  /// - Parameter help: the source of the ids.
  static func entryIDs(_ help: String, isOptional: Bool = false) -> ArgumentDescription {
    list("id", .identifier, isOptional: isOptional, help: help)
  }
}

extension ParsedArguments {
  /// The queue, without making anything; nil if there is no container.
  func existingQueue() throws -> Queue? {
    try container.openExisting()?.queue(requiredText("name"))
  }
}

extension QueueReceipt {
  /// Keys are only ever added.
  var propertyList: PropertyListValue {
    .object([
      "due": id.due, "id": id.description, "key": key, "priority": id.priority.optionalWord,
      "sender": id.sender, "sent": id.sent, "status": status.word, "value": payload,
    ])
  }
}

extension EntryPriority {
  /// For machines; the values are never changed.
  var word: String {
    switch self {
    case .high: "high"
    case .standard: "standard"
    case .low: "low"
    }
  }

  /// The word for machines; nil for the standard one.
  var optionalWord: String? { self == .standard ? nil : word }
}

extension CommandDescription {
  static let queuePut = CommandDescription(
    name: "put",
    abstract: "Put an entry into a queue, and print its id.",
    discussion: """
      The command returns when the entry is stored; it then outlives this process. The entries of one \
      sender are delivered in their order. With --lines each line is an entry as soon as it comes.
      """,
    arguments: [.queueName, .jsonValue("entry")] + ArgumentDescription.valueSources + [
      .lines, .from, .durable("it"),
      .expires,
      .value(
        "key", .identifier, named: "key",
        help: "Replace a waiting entry of this sender with the same key."),
      .value("delay", .seconds, help: "Let nobody take it before."),
      .value(
        "priority", .choice(EntryPriority.allCases.map(\.word)), named: "priority",
        standard: "standard", help: "Entries of a higher priority are delivered first."),
      .whileRole, .wait, .timeout,
    ]
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let waits = arguments.text("wait") != nil
    // Opened for the first value: without one, no container is made.
    var opened: Queue.Sender?
    try arguments.forEachValue(environment, object: "the entry") { value in
      let sender = try opened ?? arguments.queueSender(environment)
      opened = sender
      try arguments.underRole(environment, in: sender.queue.container) { fence in
        let id = try sender.enqueue(
          value, durability: arguments.durability, expires: arguments.seconds("expires"),
          key: arguments.text("key"), keepsReceipt: waits, receiptTerm: .dayAfterProcessing,
          delay: arguments.seconds("delay"), priority: arguments.priority, while: fence)
        try environment.print(line: id.description)
        guard waits else { return }
        try sender.finalStatus(of: id, until: deadline).end(of: "the entry \(id)", environment) {
          try sender.forget(id)
        }
      }
    }
  }
  .refusing(ParsedArguments.messageProblem)
}

extension ParsedArguments {
  fileprivate func queueSender(_ environment: CommandEnvironment) throws -> Queue.Sender {
    try container.open().queue(requiredText("name")).sender(sessionName(environment))
  }

  fileprivate var priority: EntryPriority {
    EntryPriority.allCases.first { $0.word == text("priority") } ?? .standard
  }
}

extension CommandDescription {
  static let queueCancel = CommandDescription(
    name: "cancel",
    abstract: "Cancel entries that nobody has taken yet.",
    discussion: """
      The exit status is 0 when all are cancelled and will not be delivered. It is 1 when one was \
      delivered, has ended otherwise, or does not exist.
      """,
    arguments: [.queueName, .entryIDs("The ids that 'queue put' or 'queue list' printed.")]
  ) { arguments, environment in
    let queue = try arguments.existingQueue()
    try arguments.forEachID(to: "cancel", environment) { text in
      guard let id = QueueEntryID(text) else { return noID }
      guard let sender = try queue?.sender(id.sender) else { return "there is no such entry" }
      if try sender.cancel(id) { return nil }
      let status = try sender.status(of: id)
      return status == .taken
        ? "a process has it already"
        : status == .processed
          ? "it was processed, or there is no such entry" : "it has ended: \(status.word)"
    }
  }

  static let queuePurge = CommandDescription(
    name: "purge",
    abstract: "Cancel everything that waits in a queue, and print how many entries that were.",
    discussion: """
      Entries that are delayed are cancelled, too. The senders learn it, as from 'queue cancel'. What a \
      process has taken stays with it, and what has failed and was kept is for 'queue forget'. At a \
      terminal the command asks first; elsewhere it needs --yes.
      """,
    arguments: [
      .queueName, .yes,
      .value(
        "timeout", .seconds, standard: "10",
        help: "How long to wait for other processes that cancel."),
    ]
  ) { arguments, environment in
    let name = arguments.requiredText("name")
    guard let queue = try arguments.existingQueue() else { return try environment.print(line: "0") }
    try arguments.confirm("Cancel everything that waits in \(name.quoted)?", environment)
    // By default each of its steps may take as long.
    let deadline = arguments.isGiven("timeout") ? arguments.deadline() : nil
    try environment.print(line: "\(queue.cancelAll(until: deadline))")
  }

  static let queueRetry = CommandDescription(
    name: "retry",
    abstract: "Send failed entries again that were kept.",
    discussion: """
      An entry that 'queue take --retries' gave up is sent again as a new entry of its first sender, \
      behind those that wait. The new ids are printed, one line each. The exit status is 1 if there is \
      no such failure.
      """,
    arguments: [
      .queueName, .entryIDs("The ids of failures that 'queue list' shows.", isOptional: true),
      .flag("all", help: "All that failed and was kept."),
    ]
  ) { arguments, environment in
    let queue = try arguments.existingQueue()
    try arguments.forEachID(to: "retry", environment, all: { try queue.failedIDs() }) { text in
      guard let id = QueueEntryID(text) else { return noID }
      guard let new = try queue?.retry(id) else { return "no such failure is kept" }
      try environment.print(line: new.description)
      return nil
    }
  }
  .refusing(ParsedArguments.idsOrAll)

  static let queueForget = CommandDescription(
    name: "forget",
    abstract: "Remove failed entries that were kept.",
    discussion: "The exit status is 1 if there is no such failure.",
    arguments: [
      .queueName, .entryIDs("The ids of failures that 'queue list' shows.", isOptional: true),
      .flag("all", help: "All that failed and was kept."),
    ]
  ) { arguments, environment in
    let queue = try arguments.existingQueue()
    try arguments.forEachID(to: "forget", environment, all: { try queue.failedIDs() }) { text in
      guard let id = QueueEntryID(text) else { return noID }
      return try queue?.forgetFailure(id) == true ? nil : "no such failure is kept"
    }
  }
  .refusing(ParsedArguments.idsOrAll)
}

private let noID = "this is not the id of an entry"

extension Queue? {
  fileprivate func failedIDs() throws -> [String] {
    try self?.failures().map(\.id.description) ?? []
  }
}
