import AppGroup
import Dispatch
import FoundationEssentials
import GroupDefaults
import PropertyLists

extension CommandDescription {
  /// The commands for defaults: the values of `GroupDefaults`.
  static let defaults = CommandDescription(
    name: "defaults",
    abstract: "Read and write defaults: keys with values that processes share.",
    subcommands: [
      .defaultsRead, .defaultsWrite,
      .defaultsDelete, .defaultsWatch,
      .defaultsImport, .defaultsExport,
    ], run: nil)

  static let defaultsRead = CommandDescription(
    name: "read",
    abstract: "Print the value of a key, or all of them; exit status 1 if there is none.",
    positionals: [
      PositionalDescription(
        name: "key", help: "The name of the value; without it, all values are printed.",
        isOptional: true)
    ],
    options: [.suite, OutputFormat.option]
  ) { arguments, environment in
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
  }

  static let defaultsWrite = CommandDescription(
    name: "write",
    abstract: "Set the value of a key; other keys keep theirs.",
    positionals: [
      .defaultsKey,
      PositionalDescription(
        name: "value", help: "The value, as JSON; with '-', it is read from standard input."),
    ],
    options: OptionDescription.valueForms + [.suite, .durable("the value")],
    problem: ParsedArguments.valueProblem
  ) { arguments, environment in
    let value = try arguments.value(environment, "the value")
    try arguments.openDefaults().write(
      value, forKey: arguments.requiredText("key"), durability: arguments.durability)
  }

  static let defaultsDelete = CommandDescription(
    name: "delete",
    abstract: "Remove a key with its value; exit status 1 if there is none.",
    positionals: [.defaultsKey],
    options: [.suite, .durable("the removal")]
  ) { arguments, _ in
    let key = arguments.requiredText("key")
    guard
      try arguments.existingDefaults()?.remove(
        forKey: key, durability: arguments.durability) == true
    else {
      throw CommandError(
        verb: "delete", object: key.quoted, reason: "there is no such key", status: .no)
    }
  }

  static let defaultsImport = CommandDescription(
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
    ]
  ) { arguments, environment in
    let file = arguments.requiredText("file")
    let mode: GroupDefaults.ImportMode = arguments.has("replace") ? .replacing : .merging
    let defaults = try arguments.openDefaults()
    // The library takes regular files only, and standard input may be a terminal or a pipe.
    if ["-", "/dev/stdin"].contains(file) {
      let input = Data(try environment.wholeStandardInput())
      try defaults.importSuite(from: input, mode, durability: arguments.durability)
    } else {
      try defaults.importSuite(from: URL(filePath: file), mode, durability: arguments.durability)
    }
  }
  .refusing { arguments in
    arguments.has("merge") == arguments.has("replace")
      ? "give either --merge or --replace: one keeps the keys that are not in the file, the other "
        + "removes them" : nil
  }

  static let defaultsExport = CommandDescription(
    name: "export",
    abstract: "Print all values as a property list, which any tool can read.",
    options: [
      .suite,
      .value(
        "format", "format", .choice(["xml", "binary"]), standard: "xml",
        help: "The form of the property list."),
    ]
  ) { arguments, environment in
    let isBinary = arguments.text("format") == "binary"
    guard let defaults = try arguments.existingDefaults() else {
      let format: OutputFormat = isBinary ? .binary : .plist
      return try environment.print(format.bytes([:], of: "the defaults"))
    }
    try environment.print(Array(defaults.exportSuite(as: isBinary ? .binary : .xml)))
  }

  static let defaultsWatch = CommandDescription(
    name: "watch",
    abstract: "Print the changes of the defaults, one line for each key.",
    discussion: """
      A line is {"key": ..., "new": ..., "old": ...}; without "old" the key is new, without "new" \
      it was removed. With --envelope it has also "publisher", as 'read --envelope' has; it is left \
      out where several processes made the changes that are printed as one. The command prints 'listening' on standard error; from then on it misses \
      nothing. After a burst of changes the last state is always printed, the earlier ones perhaps.
      """,
    positionals: [
      PositionalDescription(
        name: "key", help: "The key to watch; without it, all keys.", isOptional: true)
    ],
    options: [
      .suite, .count, .timeout,
      .flag("envelope", help: "Print each change with the process that made it, and when."),
    ]
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let opened = try arguments.container.openToListen(until: deadline, environment)
    let defaults = GroupDefaults(suite: arguments.text("suite"), in: opened.container)
    let backlog = Backlog<Change>(joining: Change.join)
    defaults.onError = { environment.tell($0) }
    let observation = try defaults.observe(
      key: arguments.text("key"), startsWithCurrent: opened.isNew,
      on: DispatchQueue(label: "wormhole.watch")
    ) { backlog.add(Change($0)) }
    environment.tellIfPolling(observation.detection, "the defaults")
    if !opened.isNew { environment.tellListening() }
    try withExtendedLifetime(observation) {
      try arguments.handleEach(of: backlog.next, until: deadline) { change in
        try environment.print(
          json: arguments.has("envelope") ? change.envelope : change.line)
        return .done
      }
    }
  }
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

/// A change of a key, from the value that was printed last to the latest one.
private struct Change: Sendable {
  let key: String
  let old: PropertyListValue?
  var new: PropertyListValue?
  /// Nil if it is not told, or if there were several.
  var publisher: Publisher?

  init(_ change: DefaultsChange) {
    key = change.key
    old = change.oldValue
    new = change.newValue
    publisher = change.publisher
  }

  /// Several changes of one key become one: a slow reader of our output costs no more memory than the
  /// defaults themselves.
  @Sendable static func join(_ waiting: inout [Change], _ change: Change) {
    guard let index = waiting.firstIndex(where: { $0.key == change.key }) else {
      return waiting.append(change)
    }
    waiting[index].new = change.new
    waiting[index].publisher = change.publisher.flatMap { last in
      waiting[index].publisher?.isSameProcess(as: last) ?? false ? last : nil
    }
    // The key has the value again that was printed last: nothing is left to print.
    if waiting[index].old == waiting[index].new { waiting.remove(at: index) }
  }

  var line: PropertyListValue { .object(["key": key, "old": old, "new": new]) }

  var envelope: PropertyListValue {
    var line = line
    if let publisher { line["publisher"] = publisher.propertyList }
    return line
  }
}
