import AppGroup
import PropertyLists

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

  /// - Parameter content: the content that is to survive.
  static func durable(_ content: String) -> OptionDescription {
    flag("durable", help: "Return only when \(content) would survive a loss of power.")
  }
}

extension PositionalDescription {
  static let file = PositionalDescription(
    name: "file", help: "A file or directory; it need not exist, but its directory must.",
    kind: .file)

  static let identifier = PositionalDescription(
    name: "identifier", help: "The name of the message; any text.", kind: .identifier)

  /// - Parameter noun: the value: "message".
  static func json(_ noun: String) -> PositionalDescription {
    PositionalDescription(
      name: "value",
      help: "The \(noun), as JSON; without it, or with '-', it is read from standard input.",
      isOptional: true)
  }

  static let notificationName = PositionalDescription(
    name: "name", help: "The name of the notification; any text.", kind: .identifier)

  static let notificationNames = PositionalDescription(
    name: "name", help: "The names of the notifications; any text.", kind: .identifier,
    isRepeating: true)
}

extension ParsedArguments {
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

  /// The end of the time that `--timeout` gives; without it, as good as never.
  func deadline() -> ContinuousClock.Instant {
    .now + (seconds("timeout") ?? .seconds(ValueKind.maximumSeconds))
  }
}
