import AppGroup
import FoundationEssentials
import GroupDefaults
import PropertyLists

struct DefaultsImportCommand: Subcommand {
  static let description = CommandDescription(
    name: "import",
    abstract: "Set the values of a property-list file, XML or binary, in one step.",
    positionals: [
      PositionalDescription(
        name: "file", help: "The file; with '-', standard input is read.", kind: .identifier)
    ],
    options: [
      .suite, .flag("merge", help: "Leave keys as they are that the file does not have."),
      .flag("replace", help: "Remove keys that the file does not have."),
      .durable("the import"),
    ],
    problem: { arguments in
      arguments.has("merge") == arguments.has("replace")
        ? "say what becomes of the other keys: either --merge or --replace" : nil
    })

  static let commandPath = ["defaults", "import"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let file = arguments.requiredText("file")
    let mode: GroupDefaults.ImportMode = arguments.has("replace") ? .replacing : .merging
    let defaults = try arguments.openDefaults()
    // A terminal or a pipe is no file that the library takes.
    if ["-", "/dev/stdin"].contains(file) {
      let input = Data(try environment.wholeStandardInput())
      try defaults.importSuite(from: input, mode, durability: arguments.durability)
    } else {
      try defaults.importSuite(
        from: URL(filePath: file), mode, durability: arguments.durability)
    }
    return .done
  }
}

struct DefaultsExportCommand: Subcommand {
  /// How the file is written.
  private enum Format: String, CaseIterable {
    case xml
    case binary
  }

  static let description = CommandDescription(
    name: "export",
    abstract: "Print all values as a property list that any tool reads.",
    options: [
      .suite,
      .value(
        "format", "format", .choice(Format.allCases.map(\.rawValue)),
        standard: Format.xml.rawValue, help: "How it is written."),
    ])

  static let commandPath = ["defaults", "export"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let isBinary = arguments.choice("format", as: Format.self) == .binary
    guard let defaults = try arguments.existingDefaults() else {
      let format: OutputFormat = isBinary ? .binary : .plist
      try environment.print(format.bytes([:], of: "the defaults"))
      return .done
    }
    try environment.print(Array(defaults.exportSuite(as: isBinary ? .binary : .xml)))
    return .done
  }
}
