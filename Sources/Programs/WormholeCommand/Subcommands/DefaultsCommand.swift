import AppGroup
import GroupDefaults
import PropertyLists

/// The commands for defaults: the values of `GroupDefaults`.
enum DefaultsCommand {
  static let description = CommandDescription(
    name: "defaults",
    abstract: "Read and write defaults: keys with values that processes share.",
    subcommands: [
      DefaultsReadCommand.description, DefaultsWriteCommand.description,
      DefaultsDeleteCommand.description, DefaultsWatchCommand.description,
      DefaultsImportCommand.description, DefaultsExportCommand.description,
    ])
}

extension OptionDescription {
  static let suite = value(
    "suite", "name", .identifier,
    help: "A separate suite in the container; without it, the container's own defaults.")
}

extension PositionalDescription {
  static let defaultsKey = PositionalDescription(
    name: "key", help: "The name of the value; any text.")
}

extension ParsedArguments {
  /// The defaults that the command line names.
  func openDefaults() throws -> GroupDefaults {
    GroupDefaults(suite: text("suite"), in: try container.open())
  }

  /// The same without making anything; nil where there is no container.
  func existingDefaults() throws -> GroupDefaults? {
    try container.openExisting().map { GroupDefaults(suite: text("suite"), in: $0) }
  }
}

struct DefaultsReadCommand: Subcommand {
  static let description = CommandDescription(
    name: "read",
    abstract: "Print the value of a key, or all of them; exit status 1 if there is none.",
    positionals: [
      PositionalDescription(
        name: "key", help: "The name of the value; without it, all values are printed.",
        isOptional: true)
    ],
    options: [.suite, OutputFormat.option])

  static let commandPath = ["defaults", "read"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let stored = try arguments.existingDefaults()?.storedValues()
    let key = arguments.text("key")
    let value = key.map { stored?[$0] } ?? stored.map { .dictionary($0) }
    let object = key?.quoted ?? "the defaults"
    guard let value else {
      throw CommandError(
        verb: "read", object: object,
        reason: key == nil ? "there are none" : "there is no such key", status: .no)
    }
    try environment.print(arguments.outputFormat.bytes(value, of: object))
    return .done
  }
}

struct DefaultsWriteCommand: Subcommand {
  static let description = CommandDescription(
    name: "write",
    abstract: "Set the value of a key; other keys keep theirs.",
    positionals: [
      .defaultsKey,
      PositionalDescription(
        name: "value", help: "The value, as JSON; with '-', it is read from standard input."),
    ],
    options: [.suite, .durable("the value")])

  static let commandPath = ["defaults", "write"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let value = try environment.value(arguments.requiredText("value"), "the value")
    try arguments.openDefaults().write(
      value, forKey: arguments.requiredText("key"),
      durability: arguments.durability)
    return .done
  }
}

struct DefaultsDeleteCommand: Subcommand {
  static let description = CommandDescription(
    name: "delete",
    abstract: "Remove a key with its value; exit status 1 if there is none.",
    positionals: [.defaultsKey],
    options: [.suite, .durable("the removal")])

  static let commandPath = ["defaults", "delete"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let key = arguments.requiredText("key")
    guard
      try arguments.existingDefaults()?.remove(
        forKey: key, durability: arguments.durability) == true
    else {
      throw CommandError(
        verb: "delete", object: key.quoted, reason: "there is no such key", status: .no)
    }
    return .done
  }
}
