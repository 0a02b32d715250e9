import Wormhole
import WormholePropertyLists

// Arguments that several commands share.

extension OptionDescription {
  static let count = value("count", "n", .count, help: "Stop after this many; without it, never.")

  static let timeout = value(
    "timeout", "seconds", .seconds,
    help: "Give up after this time, with exit status 124; without it, never.")

  static let raw = flag(
    "raw", help: "Print a string as its text, and data as its bytes, not as JSON.")

  static let pretty = flag("pretty", help: "Print JSON on several lines, indented.")

  static let json = flag("json", help: "Print one line of JSON instead of text for people.")

  static let whileRole = value(
    "while", "role", .live(.presence),
    help: "Do it only under this exclusive role, as long as no other process has entered since "
      + "\(CommandVariable.fence) was set; otherwise nothing changes, and the exit status is 1.")

  /// - Parameter content: the content that is to survive.
  static func durable(_ content: String) -> OptionDescription {
    flag("durable", help: "Return only when \(content) would survive a loss of power.")
  }
}

extension PositionalDescription {
  static let file = PositionalDescription(
    name: "file", help: "A file or directory; it need not exist, but its directory must.",
    kind: .file)

  static let optionalFile: PositionalDescription = {
    var file = PositionalDescription.file
    file.isOptional = true
    return file
  }()

  static let identifier = PositionalDescription(
    name: "identifier", help: "The name of the message; any text.", kind: .live(.message))

  /// - Parameter noun: the value: "message".
  static func json(_ noun: String) -> PositionalDescription {
    PositionalDescription(
      name: "value",
      help: "The \(noun), as JSON; without it, or with '-', it is read from standard input.",
      isOptional: true)
  }

  static let notificationName = PositionalDescription(
    name: "name", help: "The name of the notification; any text.",
    kind: .live(.notification))

  static let notificationNames = PositionalDescription(
    name: "name", help: "The names of the notifications; any text.",
    kind: .live(.notification),
    isRepeating: true)
}

extension ParsedArguments {
  /// Makes a change under the role that `--while` names, if it names one.
  func underRole(
    _ environment: CommandEnvironment, in container: SharedContainer,
    _ body: (Presence.Fence?) throws -> Void
  ) throws {
    guard let role = text("while") else { return try body(nil) }
    guard let number = environment.variable(CommandVariable.fence).flatMap({ UInt64($0) }) else {
      throw CommandError(
        verb: "use", object: "--while \(role.quotedForShell)",
        reason: "\(CommandVariable.fence) is not set: it is in the environment of a command that "
          + "runs under 'presence enter --exclusive' or 'run --alone'", status: .usage)
    }
    do {
      try body(container.presence(role).fence(number))
    } catch let error as AppGroupError where error.code == .leaseLost {
      throw CommandError(
        verb: "change anything", object: "under \(role.quoted)", reason: error.reason, status: .no)
    }
  }

  var durability: Durability { has("durable") ? .durable : .standard }

  var outputFormat: OutputFormat { text("format").flatMap(OutputFormat.init(rawValue:)) ?? .json }

  /// Returns the form in which a value is printed, as `--raw`, `--format` and `--pretty` say.
  ///
  /// - Parameter object: the object of an error's sentence.
  func bytes(_ value: PropertyListValue, of object: String) throws -> [UInt8] {
    try has("raw")
      ? value.rawBytes(of: object)
      : outputFormat.bytes(value, of: object, isPretty: has("pretty"))
  }

  /// The end of the time that `--timeout` gives.
  ///
  /// - Parameter standard: The time without it; by default as good as never.
  func deadline(
    standard: Duration = .seconds(ValueKind.maximumSeconds)
  ) -> ContinuousClock.Instant {
    .now + (seconds("timeout") ?? standard)
  }
}
