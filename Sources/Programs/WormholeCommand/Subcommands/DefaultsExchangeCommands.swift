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
      .suite, .flag("merge", help: "Keep the keys that are not in the file."),
      .flag("replace", help: "Remove the keys that are not in the file."),
      .durable("the import"),
    ],
    problem: { arguments in
      arguments.has("merge") == arguments.has("replace")
        ? "give either --merge or --replace: one keeps the keys that are not in the file, the other "
          + "removes them" : nil
    })

  static let commandPath = ["defaults", "import"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let file = arguments.requiredText("file")
    let mode: GroupDefaults.ImportMode = arguments.has("replace") ? .replacing : .merging
    let defaults = try arguments.openDefaults()
    // The library takes regular files only, and standard input may be a terminal or a pipe.
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
  /// The form of the property list.
  private enum Format: String, CaseIterable {
    case xml
    case binary
  }

  static let description = CommandDescription(
    name: "export",
    abstract: "Print all values as a property list, which any tool can read.",
    options: [
      .suite,
      .value(
        "format", "format", .choice(Format.allCases.map(\.rawValue)),
        standard: Format.xml.rawValue, help: "The form of the property list."),
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
