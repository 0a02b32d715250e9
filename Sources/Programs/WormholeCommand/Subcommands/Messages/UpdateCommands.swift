import Synchronization
import Wormhole
import WormholePropertyLists

extension CommandDescription {
  static let update = CommandDescription(
    name: "update",
    abstract: "Change a message with a command; no change of another process is lost.",
    discussion: """
      COMMAND reads the message on standard input and prints the new one, null to remove it. If there is \
      no message, it reads the value of --default, or null. If it fails, nothing changes, and its exit \
      status is that of 'update'. It is killed together with 'update'.

      COMMAND may take as long as it needs. If 'update' is stopped, others may take the lease over after \
      50 milliseconds, and with --term after that time; on etcd they need not wait for it at all. \
      COMMAND then runs again with the newer message, and WORMHOLE_ATTEMPT in its environment is 2, 3 \
      and so on.
      """,
    arguments: [
      .identifier,
      .value(
        "default", .text, named: "json",
        help: "What COMMAND reads, as JSON, if there is no message."),
      .nulls, .messageExpires,
      .durable("the new message"),
      .value(
        "timeout", .seconds, standard: "60",
        help: "How long to wait for others that change the message."),
      .value(
        "term", .seconds,
        help: "Let others take the lease over after this time, although COMMAND runs."),
      .command(help: "Reads the message and prints the new one, both as JSON."),
    ]
  ) { arguments, environment in
    let identifier = arguments.requiredText("identifier")
    let command = ExternalCommand(words: arguments.tail ?? [])
    let standard = try arguments.text("default").map {
      try JSONInput.read(Array($0.utf8), source: "the value of --default", nulls: arguments.nulls)
    }
    let attempts = Atomic(0)
    try arguments.container.open().value(identifier).update(
      durability: arguments.durability,
      until: arguments.deadline(),
      term: arguments.seconds("term") ?? LeaseDeclaration.whileRunning,
      expiresAfter: arguments.seconds("expires")
    ) { message in
      let attempt = attempts.wrappingAdd(1, ordering: .relaxed).newValue
      message = try environment.withoutTimeLimit {
        let input = try (message ?? standard).map {
          try OutputFormat.json.bytes($0, of: identifier.quoted)
        }
        let outcome = try command.run(
          input: input ?? Array("null\n".utf8),
          variables: ["WORMHOLE_ATTEMPT": "\(attempt)", CommandVariable.identifier: identifier],
          collectsOutput: true)
        if let failure = command.failure(outcome.termination) {
          throw CommandError(
            cannot: "update \(identifier.quoted)", because: "\(failure); the message is unchanged",
            status: ExitStatus(outcome.termination))
        }
        return try JSONInput.readOptional(
          outcome.output, source: "the output of \(command.words[0]) for \(identifier.quoted)",
          nulls: arguments.nulls)
      }
    }
  }

  static let increment = CommandDescription(
    name: "incr",
    abstract: "Add to a message that is a number, and print the sum.",
    discussion: """
      No change of another process is lost. A message that does not exist counts as 0. Without --expires \
      the sum does not expire. Whole numbers have 64 bits; if the sum does not fit, or the message is not a number, nothing \
      changes, and the exit status is 65.
      """,
    arguments: [
      .identifier, .optional("by", help: "The number to add, 1 by default; it may be negative."),
      .messageExpires, .durable("the sum"),
      .writeTimeout,
    ]
  ) { arguments, environment in
    let identifier = arguments.requiredText("identifier")
    let step = arguments.text("by").flatMap(PropertyListValue.init(number:)) ?? 1
    let sum = try arguments.container.open().value(identifier).update(
      durability: arguments.durability, until: arguments.deadline(),
      expiresAfter: arguments.seconds("expires")
    ) { message in
      let sum = try (message ?? 0).adding(step, identifier)
      message = sum
      return sum
    }
    try environment.print(json: sum)
  }
  .refusing { arguments in
    arguments.text("by").flatMap {
      PropertyListValue(number: $0) == nil ? "'\($0)' is not a number" : nil
    }
  }
}

extension PropertyListValue {
  /// Reads a number as of JSON; nil for anything else.
  fileprivate init?(number text: String) {
    // Text that is not JSON is not a number, for whatever reason.
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
    default: throw refused("the message is not a number that can be added to")
    }
  }
}
