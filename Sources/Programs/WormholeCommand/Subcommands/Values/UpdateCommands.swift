import Synchronization
import Wormhole
import WormholePropertyLists

extension CommandDescription {
  static let update = CommandDescription(
    name: "update",
    abstract: "Change values with a command, without losing another process's change.",
    discussion: """
      COMMAND reads the value on standard input and prints the new one, null to remove it. If there is \
      no value, it reads the value of --default, or null. If it fails, nothing changes, and its exit \
      status is that of 'update'. It is killed together with 'update', and gets its signals, with all that it \
      has started; the output of all of it counts.

      With several names all changes become visible in one step. COMMAND reads one object, with a member \
      for each value that exists, and prints the object of the new ones; a value that is missing \
      there is removed:
        \(ProgramName.called) update from to -- jq '.from += -5 | .to += 5'

      COMMAND may take as long as it needs. If 'update' is stopped, others may take the lease over after \
      50 milliseconds, and with --term after that time; on etcd they need not wait for it at all. \
      COMMAND then runs again with the newer value, and WORMHOLE_ATTEMPT in its environment is 2, 3 \
      and so on.

      With --add no COMMAND runs: the number is added to the value, and the sum is printed. A value \
      that does not exist counts as 0. Whole numbers have 64 bits; if the sum does not fit, or the value is \
      no number, nothing changes, and the exit status is 65.
      """,
    arguments: [
      .list("name", .live(.value), help: "The names of the values; any text."),
      .value(
        "default", .text, named: "json",
        help: "What COMMAND reads, as JSON, if there is no value."),
      .nulls, .valueExpires, .durable("the new value"),
      .value(
        "timeout", .duration, standard: "60",
        help: "How long to wait for others that change the value."),
      .value(
        "term", .duration,
        help: "Let others take the lease over after this time, although COMMAND runs."),
      .value(
        "add", .text, named: "number",
        help: "Add this number, which may be negative, instead of running a command."),
      .command(
        help: "Reads the value and prints the new one, both as JSON.", replacedBy: "add"),
    ]
  ) { arguments, environment in
    let names = arguments.texts("name")
    if let step = arguments.text("add").flatMap(PropertyListValue.init(number:)) {
      return try arguments.add(step, to: names[0], environment)
    }
    let standard = try arguments.text("default").map {
      try JSONInput.read(Array($0.utf8), source: "the value of --default", nulls: arguments.nulls)
    }
    let change = try MessageChange(arguments, environment)
    let first = names.count == 1 ? Prefetch.value(names[0]) : nil
    let (container, deadline) = (try arguments.container.open(first), arguments.deadline())
    let term = arguments.duration("term") ?? LeaseDeclaration.whileRunning
    guard names.count > 1 else {
      return try container.value(names[0]).update(
        durability: arguments.durability, until: deadline, term: term,
        expiresAfter: arguments.duration("expires")
      ) { $0 = try change.applied(to: $0 ?? standard) }
    }
    try container.update(
      names, durability: arguments.durability, until: deadline, term: term
    ) { messages in
      var old = messages
      for name in names where old[name] == nil { old[name] = standard }
      messages = try change.messages(in: change.applied(to: .dictionary(old)), named: names)
    }
  }
  .refusing { arguments in
    if let number = arguments.text("add") {
      if arguments.tail != nil { return "--add and a command exclude each other" }
      if PropertyListValue(number: number) == nil { return "\(number.quoted) is not a number" }
    }
    guard arguments.texts("name").count > 1 else { return nil }
    return ["expires", "add"].first(where: arguments.isGiven).map { "--\($0) is for one value" }
  }
}

extension ParsedArguments {
  /// Adds to a value that is a number, and prints the sum.
  fileprivate func add(
    _ step: PropertyListValue, to identifier: String, _ environment: CommandEnvironment
  ) throws {
    let standard = try text("default").map {
      try JSONInput.read(Array($0.utf8), source: "the value of --default")
    }
    let sum = try container.open(.value(identifier)).value(identifier).update(
      durability: durability, until: deadline(), expiresAfter: duration("expires")
    ) { message in
      let sum = try (message ?? standard ?? 0).adding(step, identifier)
      message = sum
      return sum
    }
    let text = try JSONWriter.string(sum)
    try environment.print(line: text, after: "the sum is \(text)")
  }
}

/// The change of `update`: a command that reads the old content and prints the new one.
private final class MessageChange: Sendable {
  private let command: ExternalCommand
  /// The values, as the object of a sentence.
  private let title: String
  private let name: String?
  private let nulls: JSONReader.Nulls
  private let environment: CommandEnvironment
  private let attempts = Atomic(0)

  init(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws {
    command = try arguments.requiredCommand()
    let names = arguments.texts("name")
    title = names.map(\.quoted).joined(separator: ", ")
    name = names.count == 1 ? names[0] : nil
    nulls = arguments.nulls
    self.environment = environment
  }

  /// Runs the command, each time with a higher number; nil if it printed null.
  func applied(to content: PropertyListValue?) throws -> PropertyListValue? {
    let attempt = attempts.wrappingAdd(1, ordering: .relaxed).newValue
    return try environment.withoutTimeLimit {
      let input = try content.map { try OutputFormat.json.bytes($0, of: title) }
      var variables = ["WORMHOLE_ATTEMPT": "\(attempt)"]
      variables[CommandVariable.identifier] = name
      let outcome = try command.run(
        input: input ?? Array("null\n".utf8), variables: variables, collectsOutput: true,
        interruption: Interruption(quits: true, adopts: true), work: .tree)
      guard outcome.output.count <= JSONInput.maximumBytes else {
        throw CommandError(
          cannot: "update \(title)",
          because: "\(command.words[0]) printed more than \(JSONInput.maximumBytes >> 20) MiB",
          status: .badData)
      }
      let consequence = name == nil ? "the values are unchanged" : "the value is unchanged"
      if let failure = command.failure(outcome.termination) {
        throw CommandError(
          cannot: "update \(title)", because: "\(failure); \(consequence)",
          status: ExitStatus(outcome.termination))
      }
      do {
        return try JSONInput.readOptional(
          outcome.output, source: "the output of \(command.words[0]) for \(title)", nulls: nulls)
      } catch let error as CommandError {
        throw CommandError(
          cannot: error.action,
          because: "\(error.reason); the command must print JSON (text in quotes), and "
            + consequence,
          status: error.status)
      }
    }
  }

  /// The members of an object that the command printed; none for null.
  func messages(
    in output: PropertyListValue?, named names: [String]
  ) throws -> [String: PropertyListValue] {
    func refused(_ reason: String) -> CommandError {
      CommandError(
        cannot: "update \(title)",
        because: "\(command.words[0]) printed \(reason); the values are unchanged",
        status: .badData)
    }
    guard let output else { return [:] }
    guard case .dictionary(let messages) = output else {
      throw refused("something other than an object with the new values")
    }
    if let other = messages.keys.sorted().first(where: { !names.contains($0) }) {
      throw refused("\(other.quoted), which is not among the values to update")
    }
    return messages
  }
}

extension PropertyListValue {
  /// Reads a number as in JSON; nil for anything else.
  fileprivate init?(number text: String) {
    // Text that is not JSON, for whatever reason, is not a number.
    guard let value = try? JSONReader.read(Array(text.utf8)) else { return nil }
    switch value {
    case .integer, .real: self = value
    default: return nil
    }
  }

  /// - Throws: `CommandError` if this is not a number, or the sum does not fit.
  fileprivate func adding(
    _ step: PropertyListValue, _ identifier: String
  ) throws -> PropertyListValue {
    func refused(_ reason: String) -> CommandError {
      CommandError(
        cannot: "increment \(identifier.quoted)", because: reason + "; it is unchanged",
        status: .badData)
    }
    switch (self, step) {
    case (.integer(let value), .integer(let step)):
      let (sum, overflows) = value.addingReportingOverflow(step)
      guard !overflows else { throw refused("the sum has more than 64 bits") }
      return .integer(sum)
    case (.integer, _), (.real, _):
      guard let value = doubleValue, let step = step.doubleValue, (value + step).isFinite else {
        throw refused("the sum is not a number")
      }
      return .real(value + step)
    default: throw refused("the value is not a number that can be added to")
    }
  }
}
