/// How a command prints values.
enum OutputFormat: String, CaseIterable, Sendable {
  case json
  case plist
  case binary

  static let option = OptionDescription.value(
    "format", "format", .choice(allCases.map(\.rawValue)), standard: json.rawValue,
    help: "How values are printed.")
}

extension ParsedArguments {
  var outputFormat: OutputFormat { choice("format", as: OutputFormat.self) ?? .json }
}
