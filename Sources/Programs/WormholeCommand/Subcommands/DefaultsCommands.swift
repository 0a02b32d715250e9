import Dispatch
import FoundationEssentials
import GroupDefaults
import Wormhole
import WormholePropertyLists

extension CommandDescription {
  static let defaults = CommandDescription(
    name: "defaults",
    abstract: "Read and write defaults: keys with values that processes share.",
    subcommands: [
      .defaultsRead, .defaultsWrite, .defaultsRemove, .defaultsWatch, .defaultsImport,
      .defaultsExport,
    ])

  static let defaultsRead = CommandDescription(
    name: "read",
    abstract: "Print the value of a key, or all of them; exit status 1 if there is none.",
    arguments: [
      .optional(
        "key", .live(.key), help: "The name of the value; without it, all values are printed."),
      .suite, .jsonAlways, .format,
    ]
  ) { arguments, environment in
    let stored = try arguments.existingDefaults()?.storedValues()
    let key = arguments.text("key")
    let value = key.map { stored?[$0] } ?? stored.map { .dictionary($0) }
    let object = key?.quoted ?? "the defaults"
    guard let value else {
      throw CommandError.no(
        "read \(object)", because: key == nil ? "there are none" : "there is no such key")
    }
    try environment.print(arguments.outputFormat.bytes(value, of: object))
  }

  static let defaultsWrite = CommandDescription(
    name: "write",
    abstract: "Set the value of a key; other keys keep theirs.",
    discussion: """
      A value is JSON, or a word. As with defaults(1) of macOS, one of these may stand before it:

      -string TEXT
      -data HEX
      -int NUMBER
      -float NUMBER
      -bool true|false|yes|no|1|0
      -date 2001-01-01T00:00:00Z
      -array ITEM ...
      -array-add ITEM ...
      -dict KEY VALUE ...
      -dict-add KEY VALUE ...

      An item or value may have one of the first six before it, too. -array-add appends items to the \
      array that is there, and -dict-add sets keys of the dictionary that is there; without one they \
      make it. Each is one atomic change, so several processes can add at the same time. Words that \
      begin with a dash go after '--', after all options.
      """,
    arguments: [
      .defaultsKey,
      .list(
        "value", markers: TypedWords.markers,
        help: "The value; with '-', it is read from standard input, as JSON."),
      .form, .nulls, .suite, .durable("the value"),
    ]
  ) { arguments, environment in
    let words = arguments.texts("value")
    let areTyped = TypedWords.areMeant(by: words)
    let change = try TypedWords(words) { word in
      areTyped
        ? try arguments.value(ofWord: word, environment, "the value")
        : try arguments.value(environment, "the value")
    }
    let key = arguments.requiredText("key")
    try arguments.openDefaults().update(forKey: key, durability: arguments.durability) {
      try change.apply(to: &$0, ofKey: key)
    }
  }
  .refusing { TypedWords.problem($0) ?? ParsedArguments.valueProblem($0) }

  static let defaultsRemove = CommandDescription(
    name: "remove",
    abstract: "Remove a key with its value, or a suite; exit status 1 if there is none.",
    arguments: [
      .optional("key", .live(.key), help: "The name of the value; any text."),
      .flag("all", help: "Remove all keys, in one step, and so the suite."), .suite,
      .durable("the removal"),
    ]
  ) { arguments, _ in
    let (key, durability) = (arguments.text("key"), arguments.durability)
    let defaults = try arguments.existingDefaults()
    let isRemoved =
      try key.map { try defaults?.remove(forKey: $0, durability: durability) }
      ?? defaults?.removeSuite(durability: durability)
    guard isRemoved == true else {
      throw key.map { noSuchKey($0, "remove") }
        ?? CommandError.no("remove the defaults", because: "there are none")
    }
  }
  .refusing { arguments in
    arguments.has("all") == (arguments.text("key") != nil)
      ? "give either a key or --all: the one removes its value, the other all of them" : nil
  }

  static let defaultsImport = CommandDescription(
    name: "import",
    abstract: "Set the values of a property-list file, XML or binary, or of JSON, in one step.",
    arguments: [
      .operand("file", .identifier, help: "The file; with '-', standard input is read."), .suite,
      .flag("merge", help: "Keep the keys that are not in the file."),
      .flag("replace", help: "Remove the keys that are not in the file."),
      .value(
        "format", .choice(["plist", "json"]), named: "format", standard: "plist",
        help: "The form of the file; of JSON it must be one object."),
      .durable("the import"),
    ]
  ) { arguments, environment in
    let file = arguments.requiredText("file")
    let mode: GroupDefaults.ImportMode = arguments.has("replace") ? .replacing : .merging
    // The library takes only regular files, and standard input may be a terminal or a pipe.
    let isInput = ["-", "/dev/stdin"].contains(file)
    let isJSON = arguments.text("format") == "json"
    let data =
      isJSON
      ? try environment.dictionaryOfJSON(isInput ? nil : file)
      : isInput ? Data(try environment.wholeStandardInput()) : nil
    let defaults = try arguments.openDefaults()
    if let data {
      try defaults.importSuite(from: data, mode, durability: arguments.durability)
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
    abstract: "Print all values as a property list, which any tool can read, or as JSON.",
    arguments: [
      .suite,
      .value(
        "format", .choice(["plist", "binary", "json"]), named: "format", standard: "plist",
        help: "The form of the property list, or one line of JSON. XML has dates to the second."),
      .flag("json", help: "The same as --format json."),
    ]
  ) { arguments, environment in
    let defaults = try arguments.existingDefaults()
    if arguments.has("json") || arguments.text("format") == "json" {
      return try environment.print(json: defaults?.storedValues() ?? [:])
    }
    let isBinary = arguments.text("format") == "binary"
    guard let defaults else {
      let format: OutputFormat = isBinary ? .binary : .plist
      return try environment.print(format.bytes([:] as PropertyListValue, of: "the defaults"))
    }
    try environment.print(Array(defaults.exportSuite(as: isBinary ? .binary : .xml)))
  }

  static let defaultsWatch = CommandDescription(
    name: "watch",
    abstract: "Print the changes of the defaults, one line for each key.",
    discussion: """
      A line is {"key": ..., "new": ..., "old": ...}; without "old" the key is new, without "new" \
      it was removed. With --details it has also "publisher", as 'read --details' has; it is left \
      out where several processes made the changes that are printed as one. The command prints 'listening' on standard error; from then on it misses \
      nothing. After a burst of changes the last state is always printed, the earlier ones perhaps.

      \(eachCommand) Its environment has WORMHOLE_IDENTIFIER, the key, and, where one process made the \
      change, WORMHOLE_TIME and WORMHOLE_SENDER, its program.
      """,
    arguments: [
      .optional("key", .live(.key), help: "The key to watch; without it, all keys."), .suite,
      .count, .timeout, .readyDescriptor,
      .details,
      .jsonAlways, .command(forEach: "line"),
    ]
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let opened = try arguments.container.openToListen(until: deadline, environment)
    let defaults = GroupDefaults(suite: arguments.text("suite"), in: opened.container)
    let backlog = Backlog<Change>(joining: Change.join)
    defaults.onError = { environment.report($0) }
    let observation = try defaults.observe(
      key: arguments.text("key"), startsWithCurrent: opened.isNew,
      on: DispatchQueue(label: "wormhole.watch")
    ) { backlog.add(Change($0)) }
    environment.reportIfPolling(observation.detection, "the defaults")
    if !opened.isNew { environment.reportListening() }
    try withExtendedLifetime(observation) {
      try arguments.handleEach(of: backlog.next, until: deadline) { change in
        let publisher = change.publisher
        let line: JSONObject = [
          "key": change.key, "old": change.old, "new": change.new,
          "publisher": arguments.has("details") ? publisher : nil,
        ]
        return try arguments.hand(
          line, titled: change.key.quoted, environment,
          variables: CommandVariable.common(
            identifier: change.key, time: publisher?.date, sender: publisher?.program))
      }
    }
  }
}

extension CommandEnvironment {
  /// The property list of a JSON object, in a file or on standard input.
  fileprivate func dictionaryOfJSON(_ file: String?) throws -> Data {
    let source = file ?? "standard input"
    let value = try JSONInput.read(
      file.map { try content(of: $0) } ?? wholeStandardInput(), source: source)
    guard case .dictionary = value else {
      throw CommandError(
        cannot: "import \(source)", because: "it is JSON, but not an object of keys and values",
        status: .badData)
    }
    return Data(try OutputFormat.binary.bytes(value, of: source))
  }
}

extension ArgumentDescription {
  static let suite = value(
    "suite", .live(.suite), named: "name",
    help: "A separate suite in the container; without it, the container's own defaults.")

  static let defaultsKey = operand("key", .live(.key), help: "The name of the value; any text.")
}

extension ParsedArguments {
  func openDefaults() throws -> GroupDefaults {
    GroupDefaults(suite: text("suite"), in: try container.open())
  }

  /// The defaults without making anything; nil if there is no container.
  func existingDefaults() throws -> GroupDefaults? {
    try container.openExisting().map { GroupDefaults(suite: text("suite"), in: $0) }
  }
}

/// A change of a key, from the last printed value to the latest one.
private struct Change: Sendable {
  let key: String
  let old: PropertyListValue?
  var new: PropertyListValue?
  /// Nil if it is unknown, or if there were several.
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
    // The key has its last printed value again: nothing is left to print.
    if waiting[index].old == waiting[index].new { waiting.remove(at: index) }
  }
}

func noSuchKey(_ key: String, _ verb: String) -> CommandError {
  CommandError.no("\(verb) \(key.quoted)", because: "there is no such key")
}
