import GroupDefaults
import Wormhole
import WormholePropertyLists

extension CommandDescription {
  static let defaultsReadType = CommandDescription(
    name: "read-type",
    abstract: "Print the type of a key's value; exit status 1 if there is none.",
    discussion: """
      The line is that of defaults(1): "Type is ", and string, data, integer, float, boolean, date, \
      array or dictionary.
      """,
    arguments: [.defaultsKey, .suite]
  ) { arguments, environment in
    let key = arguments.requiredText("key")
    guard let value = try arguments.existingDefaults()?.storedValues()?[key] else {
      throw noSuchKey(key, "read")
    }
    try environment.print(line: "Type is \(value.typeName)")
  }

  static let defaultsRename = CommandDescription(
    name: "rename",
    abstract: "Give a value another key, in one step.",
    discussion: """
      The exit status is 1, and nothing has changed, if there is no such key, or if the new key has a \
      value already; with --replace, that value is replaced.
      """,
    arguments: [
      .defaultsKey, .operand("new-key", help: "The new name of the value; any text."),
      .suite,
      .flag("replace", help: "Replace the value that the new key has."),
      .durable("the change"),
    ]
  ) { arguments, _ in
    let (key, new) = (arguments.requiredText("key"), arguments.requiredText("new-key"))
    guard let defaults = try arguments.existingDefaults() else { throw noSuchKey(key, "rename") }
    let replaces = arguments.has("replace")
    try defaults.update(durability: arguments.durability) { values in
      guard let value = values.removeValue(forKey: key) else { throw noSuchKey(key, "rename") }
      guard replaces || values[new] == nil else {
        throw CommandError.no(
          "rename \(key.quoted)",
          because: "\(new.quoted) has a value already; remove it first, or give --replace")
      }
      values[new] = value
    }
  }

  static let defaultsFind = CommandDescription(
    name: "find",
    abstract: "Search all suites for a text; exit status 1 if it is nowhere.",
    discussion: """
      A value is printed if its key, a string, or a key in it contains the text, or if a number or truth \
      value in it reads as the text. Capital and small letters are the same. A line is {"key": ..., \
      "suite": ..., "value": ...}; without "suite" it is of the container's own defaults.
      """,
    arguments: [.operand("text", .identifier, help: "The text to look for."), .jsonAlways]
  ) { arguments, environment in
    let text = arguments.requiredText("text").lowercased()
    var status = ExitStatus.no
    try arguments.forEachSuite(environment) { suite, values in
      for (key, value) in values.sorted(by: { $0.key < $1.key }) {
        guard key.lowercased().contains(text) || value.contains(text) else { continue }
        status = .done
        try environment.print(json: .object(["key": key, "suite": suite, "value": value]))
      }
    }
    try status.end()
  }

  static let defaultsDomains = CommandDescription(
    name: "domains",
    abstract: "List the suites that have values; exit status 1 if there is none.",
    discussion: """
      A line is {"keys": ..., "suite": ...}, with the number of keys; without "suite" it is of the \
      container's own defaults.
      """,
    arguments: [.jsonAlways]
  ) { arguments, environment in
    var status = ExitStatus.no
    try arguments.forEachSuite(environment) { suite, values in
      status = .done
      try environment.print(json: .object(["keys": values.count, "suite": suite]))
    }
    try status.end()
  }
}

func noSuchKey(_ key: String, _ verb: String) -> CommandError {
  CommandError.no("\(verb) \(key.quoted)", because: "there is no such key")
}

extension ParsedArguments {
  /// Calls the body with each suite that is not empty. A suite that cannot be read is reported, and
  /// the others follow.
  ///
  /// - Throws: The last such error's status, in the end.
  fileprivate func forEachSuite(
    _ environment: CommandEnvironment,
    in body: (String?, [String: PropertyListValue]) throws -> Void
  ) throws {
    guard let container = try container.openExisting() else { return }
    var failure: ExitStatus?
    for name in try GroupDefaults.suiteNames(in: container) {
      let values: [String: PropertyListValue]
      do {
        values = try GroupDefaults(suite: name, in: container).storedValues() ?? [:]
      } catch let error as GroupDefaultsError {
        environment.report(error)
        failure = ExitStatus(of: error)
        continue
      }
      if !values.isEmpty { try body(name, values) }
    }
    if let failure { throw failure }
  }
}

extension PropertyListValue {
  /// Returns whether a text, in small letters, is in a key or string, or is a number or truth value.
  fileprivate func contains(_ text: String) -> Bool {
    switch self {
    case .string(let string): string.lowercased().contains(text)
    case .array(let items): items.contains { $0.contains(text) }
    case .dictionary(let members):
      members.contains { $0.key.lowercased().contains(text) || $0.value.contains(text) }
    case .data: false
    case .integer(let number): String(number) == text
    case .unsigned(let number): String(number) == text
    case .real(let number): String(number) == text
    case .boolean(let value): String(value) == text
    case .date(let date): ISO8601.text(date)?.lowercased().contains(text) ?? false
    }
  }
}
