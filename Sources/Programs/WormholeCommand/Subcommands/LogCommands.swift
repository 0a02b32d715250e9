import FoundationEssentials
import Wormhole
import WormholePropertyLists
import WormholeSystem

extension CommandDescription {
  static let log = CommandDescription(
    name: "log",
    abstract: "Append messages to a log, and read it, each subscriber at its own pace.",
    subcommands: [.logAppend, .logRead, .logBounds, .logRemove])

  static let logAppend = CommandDescription(
    name: "append",
    abstract: "Append a message, and print its number.",
    discussion: """
      Numbers are consecutive. The oldest messages go when the log exceeds its bounds; see 'log bounds'. \
      With --lines each line is a message as soon as it comes.
      """,
    arguments: [.logName, .jsonValue("message")] + ArgumentDescription.valueSources + [
      .lines, .durable("the message"),
    ]
  ) { arguments, environment in
    let name = arguments.requiredText("name")
    var opened: PlainLog?
    try arguments.forEachValue(environment, object: "the message") { message in
      let log = if let opened { opened } else { try arguments.container.open(.log(name)).log(name) }
      opened = log
      let number = try log.append(message, durability: arguments.durability)
      try environment.print(line: "\(number)", after: "message \(number) was appended")
    }
  }
  .refusing(ParsedArguments.valueProblem)

  static let logRead = CommandDescription(
    name: "read",
    abstract: "Print the messages of a log, one line each; exit status 1 if there is none.",
    discussion: """
      With --subscriber the messages are those that this one has not read. One that cannot be read or \
      printed is reported and left out, and the exit status is 65 in the end. With --details a line is \
      {"message": ..., "missed": ..., "number": ..., "redelivery": ..., "time": ...}.

      With --follow those that are appended are printed, too. The command prints 'listening' on standard error; \
      from then on, and after a restart with --subscriber, no message is missed unless the log's bounds took \
      it away: then standard error says how many. Only one process at a time may follow for a subscriber. A \
      message counts as read when its line is printed, or when COMMAND has ended; if the command is killed \
      before that, it comes again.

      \(eachCommand) Its environment has WORMHOLE_IDENTIFIER, the log's name, \
      WORMHOLE_TIME, when the message was appended, WORMHOLE_NUMBER and WORMHOLE_REDELIVERY (1 for a \
      message that may have been handled before, else 0).
      """,
    arguments: [
      .logName, .subscriber, .fromNumber, .since,
      .flag("follow", letter: "f", help: "Go on with the messages that are appended."),
      .flag("new", help: "Begin with the next message that is appended; implies --follow."),
      .count, .timeout, .readyDescriptor, .details, .jsonAlways, .format,
      .command(forEach: "message"),
    ]
  ) { arguments, environment in
    try arguments.follows
      ? arguments.followLog(environment) : arguments.readLog(environment)
  }
  .refusing { arguments in
    if let conflict = arguments.conflict(of: "number", "since", "new") { return conflict }
    guard !arguments.follows else { return nil }
    return arguments.tail != nil
      ? "a command after '--' needs --follow"
      : arguments.isGiven("timeout") ? "--timeout needs --follow" : nil
  }

  static let logBounds = CommandDescription(
    name: "bounds",
    abstract: "Print the bounds of a log as JSON, after setting those that are given.",
    discussion: """
      They hold for all processes that append. Without a log of this name the exit status is 1, unless \
      bounds are given. By default a log keeps 10,000 messages and 64 MiB, of any age. The oldest messages are taken away when a bound is exceeded by a sixteenth.
      """,
    arguments: [
      .logName, .value("messages", .count, help: "Keep at most this many messages."),
      .value("bytes", .count, help: "Keep messages of at most this many bytes in all."),
      .value("age", .duration, help: "Keep no message longer than this; 0 for any time."),
      .jsonAlways,
    ]
  ) { arguments, environment in
    let isChange = ["messages", "bytes", "age"].contains(where: arguments.isGiven)
    let log =
      try isChange
      ? arguments.container.open().log(arguments.requiredText("name")) : arguments.existingLog()
    var bounds = try log.bounds()
    let old = bounds
    if let messages = arguments.count("messages") { bounds.messages = messages }
    if let bytes = arguments.count("bytes") { bounds.bytes = bytes }
    if let age = arguments.duration("age") { bounds.age = age > .zero ? age : nil }
    if bounds != old { try log.setBounds(bounds) }
    try environment.print(json: bounds)
  }

  static let logRemove = CommandDescription(
    name: "remove",
    abstract: "Remove a log with its messages, or subscribers; exit status 1 if one is unknown.",
    discussion: """
      The log's bounds go, too, and its subscribers, if they do not read now. A process that follows it goes on \
      with what is appended later. At a terminal the command asks first; elsewhere it needs --yes.

      With --subscriber the log stays, and nothing is asked. If a removed subscriber comes again, it is a new one.
      """,
    arguments: [
      .logName, .yes, .writeTimeout,
      .value(
        "subscriber", .identifier, named: "name", help: "Remove this subscriber; may be repeated.",
        isRepeating: true),
    ]
  ) { arguments, environment in
    if arguments.isGiven("subscriber") { return try arguments.removeSubscribers(environment) }
    let log = try arguments.existingLog(to: "remove")
    try arguments.confirm("Remove the log \(log.name.quoted) with its messages?", environment)
    guard try log.remove(until: arguments.deadline()) else { throw ExitStatus.no }
  }
}

extension ArgumentDescription {
  fileprivate static let logName = operand(
    "name", .live(.log), help: "The name of the log; any text.")

  fileprivate static let subscriber = value(
    "subscriber", .identifier, named: "name",
    help:
      "Read for this subscriber, from where it was; a new one begins where the other options say.")

  fileprivate static let fromNumber = value(
    "number", .count, help: "Begin with this message; without it, with the oldest.")

  fileprivate static let since = value(
    "since", .duration, help: "Begin with what was appended in this time.")
}

extension ParsedArguments {
  fileprivate var follows: Bool { has("follow") || has("new") }

  fileprivate func readLog(_ environment: CommandEnvironment) throws {
    let name = requiredText("name")
    var remaining = count("count") ?? .max
    let log = try existingLog()
    let (reader, next) = try LostBeforeStart.repeating {
      let reader = try self.reader(of: log)
      do {
        return (reader, remaining > 0 ? try reader.next(until: .now) : nil)
      } catch let loss as WormholeError where loss.code == .leaseLost {
        throw LostBeforeStart(error: loss)
      }
    }
    var first = next
    var isEmpty = true
    var status = ExitStatus.done
    while remaining > 0, let message = try first ?? reader.next(until: .now) {
      first = nil
      environment.report(message.missed, message.unreadable, before: message.number, of: name)
      if message.unreadable > 0 { status = .badData }
      do {
        try environment.print(outputFormat.bytes(content(message), of: message.title(in: name)))
      } catch let error where isUnprintable(error) {
        // Otherwise a subscriber would never get past it.
        environment.report(error)
        status = .badData
      }
      remaining -= 1
      isEmpty = false
    }
    // Before no message.
    if remaining > 0 {
      let (missed, unreadable) = reader.passed
      environment.report(missed, unreadable, of: name)
      if unreadable > 0 { (status, isEmpty) = (.badData, false) }
    }
    try reader.acknowledge()
    reader.close()
    if isEmpty { throw ExitStatus.no }
    try status.end()
  }

  fileprivate func followLog(_ environment: CommandEnvironment) throws {
    let deadline = deadline()
    let name = requiredText("name")
    let opened = try container.openToListen(until: deadline, environment)
    let reader = try reader(of: opened.container.log(name))
    if !opened.isNew { environment.reportListening() }
    let next: @Sendable (ContinuousClock.Instant) throws -> LogMessage<PropertyListValue>? = {
      limit in
      try environment.whenThereIsRoom(until: limit) { try reader.next(until: limit) }
    }
    try handleEach(of: next, until: deadline) { message in
      environment.report(message.missed, message.unreadable, before: message.number, of: name)
      let status = try hand(
        content(message), titled: message.title(in: name), environment,
        variables: message.variables(of: name))
      try environment.whenThereIsRoom(until: deadline) { try reader.acknowledge() }
      return status
    }
  }

  fileprivate func removeSubscribers(_ environment: CommandEnvironment) throws {
    let name = requiredText("name")
    let log = try container.openExisting()?.log(name)
    try forEachID(texts("subscriber"), to: "remove", environment) { subscriber in
      try log?.forget(subscriber: subscriber) == true
        ? nil : "the log \(name.quoted) has no such subscriber"
    }
  }

  fileprivate func existingLog(to verb: String = "read") throws -> PlainLog {
    let name = requiredText("name")
    guard let container = try container.openExisting(),
      try container.logNames().contains(where: { $0.utf8.elementsEqual(name.utf8) })
    else { throw CommandError.no("\(verb) \(name.quoted)", because: "there is no such log") }
    return container.log(name)
  }

  fileprivate func reader(of log: PlainLog) throws -> LogReader<PropertyListValue> {
    var start = LogStart.beginning
    if let number = count("number") { start = .number(number) }
    if let age = duration("since") {
      start = .date(Date(timeIntervalSinceNow: -(age / .seconds(1))))
    }
    if has("new") { start = .end }
    guard let subscriber = text("subscriber") else { return try log.read(from: start) }
    return try noticingUse { try log.subscribe(subscriber, from: start) }
  }

  /// The message; with `--details`, within its known details.
  fileprivate func content(_ message: LogMessage<PropertyListValue>) -> any Encodable {
    guard has("details") else { return message.payload }
    return [
      "number": message.number, "time": message.date, "redelivery": message.isRedelivery,
      "missed": message.missed, "message": message.payload,
    ] as JSONObject
  }
}

extension CommandEnvironment {
  /// How long a follower waits for room before it tries again.
  private static let roomPause: Duration = .seconds(1)

  /// Does something that stores a subscriber's position, as soon as there is room for it: others will make
  /// room, and nothing is lost meanwhile.
  fileprivate func whenThereIsRoom<Result>(
    until limit: ContinuousClock.Instant, _ body: () throws -> Result
  ) throws -> Result {
    var hasReported = false
    while true {
      do {
        return try body()
      } catch let error as WormholeError where error.code == .noSpace {
        guard .now < limit else { throw ExitStatus.deadline }
        if !hasReported { report("\(error); following goes on when there is room") }
        hasReported = true
        pauseThread(min(Self.roomPause, ContinuousClock.now.duration(to: limit)))
      }
    }
  }

  /// Reports the messages that are missing, perhaps before another one, to people.
  fileprivate func report(
    _ missed: Int, _ unreadable: Int, before number: Int? = nil, of log: String
  ) {
    let messages = { (count: Int) in
      (count == 1 ? "1 message" : "\(count) messages") + " of \(log.quoted)"
    }
    if missed > 0 {
      let ending =
        missed == 1
        ? "was taken away before it was read"
        : "were taken away before they were read"
      report("\(messages(missed)) \(ending)")
    }
    if unreadable > 0 {
      let place = number.map { " before message \($0)" } ?? ""
      report("\(messages(unreadable))\(place) cannot be read")
    }
  }
}

extension LogMessage<PropertyListValue> {
  fileprivate func title(in log: String) -> String { "message \(number) of \(log.quoted)" }

  fileprivate func variables(of log: String) -> [String: String] {
    var variables = CommandVariable.common(identifier: log, time: date, sender: nil)
    variables["WORMHOLE_NUMBER"] = "\(number)"
    variables[CommandVariable.redelivery] = isRedelivery ? "1" : "0"
    return variables
  }
}
