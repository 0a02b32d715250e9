import FoundationEssentials
import Wormhole
import WormholePropertyLists

extension CommandDescription {
  static let queue = CommandDescription(
    name: "queue",
    abstract: "Put work into queues, and let any number of processes take it.",
    discussion: """
      An entry waits until a process takes it, and goes to one of those that take. It is delivered \
      again, marked, if that process ends before it has handled the entry. 'queue take' keeps it \
      while COMMAND runs, and the end of COMMAND acknowledges or releases it. A later process cannot \
      acknowledge it.

      Queues work in a directory and on etcd. Those of peers have commands of their own: '\(ProgramName.called) help \
      peer'.
      """,
    subcommands: [
      .queuePut, .queueTake, .queueList, .queueRemove, .queueRetry,
    ])

  static let queuePut = CommandDescription(
    name: "put",
    abstract: "Put an entry into a queue, and print its id.",
    discussion: """
      The command returns when the entry is stored; it then outlives this process. The entries of one \
      sender are delivered in their order. With --lines each line is an entry as soon as it comes.

      With --delay or --at it is stored at once, and nobody takes it before. --at is a time of the day, \
      as the local clock shows it next (07:00), or an instant (2026-12-31T07:00:00Z); one that has passed \
      delays nothing. If no process takes at that time, the entry waits.

      With a COMMAND the entry is that command, for 'queue take --run': its words, the current directory, and of \
      the environment the variables that --env names. The rest of the environment is that of 'queue take'.
      """,
    arguments: [.queueName, .jsonValue("entry")] + ArgumentDescription.valueSources + [
      .lines, .from, .durable("it"), .expires,
      .value(
        "key", .identifier, named: "key",
        help: "Replace this sender's waiting entry with the same key."),
      .value("delay", .duration, help: "Let nobody take it before this time has passed."),
      .value("at", .time, help: "Let nobody take it before this time."),
      .value(
        "env", .identifier, named: "name",
        help: "Keep this variable of the environment for COMMAND; may be given several times.",
        isRepeating: true),
      .whileRole, .wait, .timeout,
      .command("The entry is this command, which 'queue take --run' runs."),
    ]
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let waits = arguments.text("wait") != nil
    // Opened for the first value: without one, no container is made.
    var opened: PlainSender?
    try arguments.forEachEntry(environment) { value in
      // Not by `??`: with the compiler 6.3 a failed opening would end the program by a signal.
      let sender = if let opened { opened } else { try arguments.openSender(environment) }
      opened = sender
      try arguments.underRole(environment, in: sender.queue.container) { fence in
        let id = try sender.enqueue(
          value, durability: arguments.durability, expires: arguments.duration("expires"),
          key: arguments.text("key"), keepsReceipt: waits, receiptTerm: .dayAfterProcessing,
          delay: arguments.delay, while: fence)
        try environment.print(line: id.description, after: "the entry \(id) is in the queue")
        guard waits else { return }
        try sender.finalStatus(of: id, until: deadline).end(of: "the entry \(id)", environment) {
          try sender.forget(id)
        }
      }
    }
  }
  .refusing {
    ParsedArguments.messageProblem($0) ?? $0.conflict(of: "delay", "at") ?? $0.entryProblem
  }

  static let queueRemove = CommandDescription(
    name: "remove",
    abstract: "Remove entries that nobody has taken yet, or that have failed and were kept.",
    discussion: """
      An entry of a 'queue take' that has ended is removed, too. The exit status is 0 when all are removed and will not be delivered. It is 1 when one was \
      delivered, has ended otherwise, or does not exist. The sender of an entry that waited learns that \
      it is cancelled.

      With --all everything that waits is removed, also what is delayed, and the number of entries is printed. What \
      a running process has taken stays with it, and what has failed is for --failed. At a terminal the command asks \
      first; elsewhere it needs --yes.
      """,
    arguments: [
      .queueName, .entryIDs("The ids that 'queue put' or 'queue list' printed."), .allFailed,
      .flag("all", help: "All that waits."), .yes,
      .value(
        "timeout", .duration, standard: "10",
        help: "With --all, how long to wait for other processes that remove."),
    ]
  ) { arguments, environment in
    let queue = try arguments.existingQueue()
    if arguments.has("all") { return try arguments.removeAll(of: queue, environment) }
    try arguments.forEachFailure(to: "remove", in: queue, environment) { queue, id in
      let sender = try queue.sender(id.sender)
      if try queue.forgetFailure(id) || sender.cancel(id) { return nil }
      let status = try sender.status(of: id)
      if status == .taken, try queue.endAbandoned(id, reason: removalReason) > 0 { return nil }
      return status == .taken
        ? "a process has taken it"
        : status == .processed
          ? "it was processed, or there is no such entry" : "it has ended: \(status.word)"
    }
  }
  .refusing { arguments in
    guard arguments.has("all") else { return ParsedArguments.idsOrFailed(arguments) }
    return arguments.has("failed") || !arguments.texts("id").isEmpty
      ? "--all excludes ids and --failed" : nil
  }

  static let queueRetry = CommandDescription(
    name: "retry",
    abstract: "Send failed entries again that were kept.",
    discussion: """
      An entry that 'queue take --retries' gave up is sent again as a new entry of its first sender, \
      behind those that wait. The new ids are printed, one line each. The exit status is 1 if an \
      id is not that of a failure.
      """,
    arguments: [.queueName, .entryIDs("The ids of failures that 'queue list' shows."), .allFailed]
  ) { arguments, environment in
    let queue = try arguments.existingQueue()
    try arguments.forEachFailure(to: "retry", in: queue, environment) { queue, id in
      guard let new = try queue.retry(id) else { return "no such failure is kept" }
      try environment.print(line: new.description, after: "the entry \(new) was sent again")
      return nil
    }
  }
  .refusing(ParsedArguments.idsOrFailed)
}

extension ArgumentDescription {
  static let queueName = operand("name", .live(.queue), help: "The name of the queue; any text.")

  /// - Parameter help: the source of the ids.
  static func entryIDs(_ help: String) -> ArgumentDescription {
    list("id", .identifier, isOptional: true, help: help)
  }
}

private let removalReason = "'queue remove' has removed it"

extension ParsedArguments {
  /// Removes everything that waits, and prints how many entries that was.
  fileprivate func removeAll(of queue: PlainQueue?, _ environment: CommandEnvironment) throws {
    guard let queue else { return try environment.print(line: "0") }
    try confirm("Remove everything that waits in \(queue.name.quoted)?", environment)
    // By default each of its steps may take that long.
    let waiting = try queue.cancelAll(until: isGiven("timeout") ? deadline() : nil)
    let count = try waiting + queue.endAbandoned(reason: removalReason)
    try environment.print(line: "\(count)", after: "\(count) entries were removed")
  }

  /// The queue, without making anything; nil if there is no container.
  func existingQueue() throws -> PlainQueue? {
    try container.openExisting()?.queue(requiredText("name"))
  }

  /// Calls a closure with the command after `--`, or with each value that the arguments give.
  fileprivate func forEachEntry(
    _ environment: CommandEnvironment, _ body: (PropertyListValue) throws -> Void
  ) throws {
    guard let tail else { return try forEachValue(environment, object: "the entry", body) }
    try body(Job(words: tail, variables: texts("env"), environment).value)
  }

  /// The problem if the entry is to be a command and a value, or variables are kept for none.
  fileprivate var entryProblem: String? {
    guard tail != nil else { return isGiven("env") ? "--env needs a command after '--'" : nil }
    if text("value") != nil { return "a value and a command exclude each other" }
    return ["lines", "file", "as", "nulls"].first(where: isGiven)
      .map { "--\($0) and a command exclude each other" }
  }

  /// The time that `--delay` gives, or that is left until `--at`; nil for an entry that is due at once.
  fileprivate var delay: Duration? {
    guard let time = text("at").flatMap(ValueKind.time) else { return duration("delay") }
    return max(.zero, .seconds(time.timeIntervalSinceNow))
  }

  /// Runs an action for each given entry, or with `--failed` for each that has failed; it returns
  /// why it is impossible, or nil.
  fileprivate func forEachFailure(
    to verb: String, in queue: PlainQueue?, _ environment: CommandEnvironment,
    _ action: (PlainQueue, QueueEntryID) throws -> String?
  ) throws {
    let failed = has("failed") ? try queue?.failures().map(\.id.description) ?? [] : []
    try forEachID(to: verb, environment, failed: failed) { text in
      guard let queue, let id = try queue.entryID(text) else {
        return "there is no entry with this id"
      }
      return try action(queue, id)
    }
  }

  /// Opens the container with a look at the sender's part of the queue.
  fileprivate func openSender(_ environment: CommandEnvironment) throws -> PlainSender {
    let name = requiredText("name")
    let own = sessionName(environment)
    let first = Prefetch.queue(name, sender: EncodedName(own))
    return try container.open(first).queue(name).sender(own)
  }
}

extension Queue {
  /// The entry with an id, as `queue put` prints it, or with a short one, as `queue list` shows it;
  /// throws if several have the short one.
  ///
  /// - Parameter ended: the ids of entries that have ended, which may be meant, too.
  func entryID(_ text: String, among ended: [QueueEntryID] = []) throws -> QueueEntryID? {
    if let id = QueueEntryID(text) { return id }
    let known = try Set(outstanding().map(\.id) + failures().map(\.id) + ended)
    let found = known.filter { $0.shortText == text }
    guard found.count < 2 else {
      throw CommandError.no(
        "choose the entry \(text)",
        because: "several entries have this id; give a whole one: "
          + found.map(\.description).sorted().joined(separator: ", "))
    }
    return found.first
  }
}

extension QueueEntryID {
  /// A text that a person can type: six letters and digits that follow from the whole id (FNV-1a),
  /// without those that look like others.
  var shortText: String {
    let digits = Array("23456789abcdefghijkmnpqrstuvwxyz")
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in description.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return String((0..<6).map { digits[Int(hash >> ($0 * 5 + 20)) & 31] })
  }
}
