import Wormhole

extension CommandDescription {
  static let queueCancel = CommandDescription(
    name: "cancel",
    abstract: "Cancel entries that nobody has taken yet.",
    discussion: """
      The exit status is 0 when all are cancelled and will not be delivered. It is 1 when one was \
      delivered, has ended otherwise, or does not exist.
      """,
    positionals: [.queueName, .entryIDs("The ids that 'queue put' or 'queue list' printed.")]
  ) { arguments, environment in
    let queue = try arguments.existingQueue()
    try arguments.forEachID(environment, "cancel") { id in
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
    positionals: [.queueName],
    options: [
      .yes,
      .value(
        "timeout", "seconds", .seconds, standard: "10",
        help: "How long to wait for other processes that cancel."),
    ]
  ) { arguments, environment in
    let name = arguments.requiredText("name")
    guard let queue = try arguments.existingQueue() else { return try environment.print(line: "0") }
    try arguments.confirm("Cancel everything that waits in \(name.quoted)?", environment)
    let deadline = arguments.seconds("timeout").map { ContinuousClock.now + $0 }
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
    positionals: [
      .queueName, .entryIDs("The ids of failures that 'queue list' shows.", isOptional: true),
    ],
    options: [.flag("all", help: "All that failed and was kept.")]
  ) { arguments, environment in
    let queue = try arguments.existingQueue()
    guard !arguments.has("all") else {
      for failure in try queue?.failures() ?? [] {
        if let new = try queue?.retry(failure.id) { try environment.print(line: new.description) }
      }
      return
    }
    try arguments.forEachID(environment, "send") { id in
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
    positionals: [
      .queueName, .entryIDs("The ids of failures that 'queue list' shows.", isOptional: true),
    ],
    options: [.flag("all", help: "All that failed and was kept.")]
  ) { arguments, environment in
    let queue = try arguments.existingQueue()
    guard !arguments.has("all") else {
      for failure in try queue?.failures() ?? [] { try queue?.forgetFailure(failure.id) }
      return
    }
    try arguments.forEachID(environment, "forget") { id in
      try queue?.forgetFailure(id) == true ? nil : "no such failure is kept"
    }
  }
  .refusing(ParsedArguments.idsOrAll)
}

extension ParsedArguments {
  fileprivate static let idsOrAll: @Sendable (ParsedArguments) -> String? = { arguments in
    arguments.has("all") == arguments.texts("id").isEmpty ? nil : "please provide ids, or '--all'"
  }

  /// Does something with each entry that is named, also after one for which it fails.
  ///
  /// - Parameter action: returns why it cannot be done; nil if it is.
  fileprivate func forEachID(
    _ environment: CommandEnvironment, _ verb: String, _ action: (QueueEntryID) throws -> String?
  ) throws {
    var status = ExitStatus.done
    for text in texts("id") {
      let problem = try QueueEntryID(text).map(action) ?? "this is no id of an entry"
      if let problem {
        environment.tell("cannot \(verb) \(text.quoted): \(problem)")
        status = .no
      }
    }
    try status.end()
  }
}
