import AppGroup
import GroupDefaults
import PropertyLists

/// The group of commands for defaults: what `GroupDefaults` reads and writes.
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
    help: "A suite of its own within the container; without it, the container's defaults.")
}

extension PositionalDescription {
  static let defaultsKey = PositionalDescription(
    name: "key", help: "The name of the value; any text.")
}

extension ParsedArguments {
  /// The suite that was named.
  func openDefaults() throws -> GroupDefaults {
    GroupDefaults(container: try container.open(), suite: text("suite"))
  }

  /// The suite that was named, for somebody who makes nothing; nil where there is no container.
  func existingDefaults() throws -> GroupDefaults? {
    try container.openExisting().map { GroupDefaults(container: $0, suite: text("suite")) }
  }
}

extension GroupDefaultsError {
  /// What the program exits with: whatever is wrong, it is the data.
  var exitStatus: ExitStatus { .badData }
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
    let stored = try arguments.existingDefaults()?.stored()
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
    abstract: "Set the value of a key; other keys stay as they are.",
    positionals: [
      .defaultsKey,
      PositionalDescription(
        name: "value", help: "The value, as JSON; with '-', it is read from standard input."),
    ],
    options: [.suite, .durable("the value")])

  static let commandPath = ["defaults", "write"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let text = arguments.requiredText("value")
    let value =
      text == "-"
      ? try Message.read(
        environment.wholeStandardInput(), source: "the value on standard input")
      : try Message.read(Array(text.utf8), source: "the value")
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
