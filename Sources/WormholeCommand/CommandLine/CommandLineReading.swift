/// One pass over the arguments, left to right: what has been understood so far.
struct CommandLineReading {
  private let arguments: [String]
  private var next = 0
  private var path: [CommandDescription]
  private var operands: [String] = []
  private var optionValues: [String: [String]] = [:]
  private var flags: Set<String> = []
  private var tail: [String]?

  init(root: CommandDescription, arguments: [String]) {
    self.arguments = arguments
    path = [root]
  }

  var command: CommandDescription { path[path.count - 1] }

  func error(_ reason: String) -> UsageError { UsageError(reason: reason, path: path) }

  /// Reads everything; a result means that the line asks for help, the version or a script, and
  /// that the rest of it does not matter.
  mutating func readAll() throws(UsageError) -> ArgumentParser.Invocation? {
    while next < arguments.count {
      let argument = arguments[next]
      next += 1
      if argument == "--" {
        readTerminated()
      } else if isOption(argument) {
        if let early = try readOption(argument) { return early }
      } else if argument == "help", path.count == 1 {
        return .help(try helpPath())
      } else if command.subcommands.isEmpty {
        operands.append(argument)
      } else if let subcommand = command.subcommand(named: argument) {
        path.append(subcommand)
      } else {
        throw .unknownSubcommand(argument, path: path)
      }
    }
    return nil
  }

  /// What follows `help`: `notify post`; also `--help` and, for completion offers it, `help`.
  private func helpPath() throws(UsageError) -> [CommandDescription] {
    var path = path
    for name in arguments[next...] where !["--help", "-h", "help"].contains(name) {
      guard let subcommand = path[path.count - 1].subcommand(named: name) else {
        throw .unknownSubcommand(name, path: path)
      }
      path.append(subcommand)
    }
    return path
  }

  private func isOption(_ argument: String) -> Bool {
    argument.utf8.count > 1 && argument.utf8.first == UInt8(ascii: "-")
      && !ValueKind.isNegativeNumber(argument)
  }

  /// What follows `--` is the other program's, where there is one, and operands elsewhere.
  private mutating func readTerminated() {
    let rest = arguments[next...]
    next = arguments.count
    if command.tail != nil { tail = Array(rest) } else { operands += rest }
  }

  private mutating func readOption(_ argument: String) throws(UsageError)
    -> ArgumentParser.Invocation?
  {
    let (spelling, attached) = Self.split(argument)
    let options = CommandDescription.options(at: path)
    let found = options.first { option in
      spelling == "--\(option.name)" || option.letter.map { spelling == "-\($0)" } ?? false
    }
    guard let option = found else { throw unknownOption(spelling, options) }
    guard let value = option.value else {
      if let attached {
        throw error("the flag '\(spelling)' takes no value, found '\(attached)'")
      }
      return readFlag(option)
    }
    let text = if let attached { attached } else { try separateValue(of: option) }
    try check(text, against: value.kind, of: option.spelling)
    if option.name == OptionDescription.completionScript.name, path.count == 1 {
      return CompletionShell(rawValue: text).map { .completionScript($0) }
    }
    optionValues[option.name] =
      option.isRepeating ? optionValues[option.name, default: []] + [text] : [text]
    return nil
  }

  private mutating func readFlag(_ option: OptionDescription) -> ArgumentParser.Invocation? {
    if option.name == OptionDescription.help.name { return .help(path) }
    if option.name == OptionDescription.version.name, let version = command.version {
      return .version(version)
    }
    flags.insert(option.name)
    return nil
  }

  private mutating func separateValue(of option: OptionDescription) throws(UsageError) -> String {
    guard next < arguments.count, arguments[next] != "--", !isOption(arguments[next]) else {
      throw error("missing value for '\(option.spelling)'")
    }
    next += 1
    return arguments[next - 1]
  }

  private static func split(_ argument: String) -> (spelling: String, attached: String?) {
    guard argument.hasPrefix("--"), let equals = argument.firstIndex(of: "=") else {
      return (argument, nil)
    }
    return (String(argument[..<equals]), String(argument[argument.index(after: equals)...]))
  }

  private func unknownOption(_ spelling: String, _ options: [OptionDescription]) -> UsageError {
    let known = options.map { "--\($0.name)" }
    let question = Suggestion.nearest(to: spelling, among: known).map { "did you mean '\($0)'?" }
    let hint =
      command.subcommands.isEmpty
      ? "what is not an option but begins with '-' goes after '--'"
      : "a subcommand's options go after its name"
    return error("unknown option '\(spelling)': \(question ?? hint)")
  }

  private func check(_ text: String, against kind: ValueKind, of name: String) throws(UsageError) {
    if let problem = kind.problem(with: text) {
      throw error("the value '\(text)' is invalid for '\(name)': \(problem)")
    }
  }
}

extension CommandLineReading {
  /// Gives the operands to the positionals and looks up the container.
  func finished(variable: (String) -> String?) throws(UsageError) -> ParsedArguments {
    guard command.subcommands.isEmpty else {
      var missing = error("missing subcommand")
      missing.wantsWholeHelp = true
      throw missing
    }
    let positionalValues = try assignedOperands()
    try checkTail()
    return ParsedArguments(
      commandPath: path.dropFirst().map(\.name),
      values: optionValues.merging(positionalValues) { _, positional in positional },
      flags: flags, tail: tail, selectedContainer: try selectedContainer(variable))
  }

  private func assignedOperands() throws(UsageError) -> [String: [String]] {
    var rest = operands[...]
    var assigned: [String: [String]] = [:]
    for positional in command.positionals {
      let taken = rest.prefix(positional.isRepeating ? rest.count : 1)
      rest = rest.dropFirst(taken.count)
      guard positional.isOptional || !taken.isEmpty else {
        throw error("missing expected argument '<\(positional.name)>'")
      }
      for text in taken { try check(text, against: positional.kind, of: "<\(positional.name)>") }
      if !taken.isEmpty { assigned[positional.name] = Array(taken) }
    }
    if rest.count == 1, let extra = rest.first { throw error("unexpected argument '\(extra)'") }
    if !rest.isEmpty {
      let list = rest.map { "'\($0)'" }.joined(separator: ", ")
      throw error("\(rest.count) unexpected arguments: \(list)")
    }
    return assigned
  }

  private func checkTail() throws(UsageError) {
    guard let description = command.tail else { return }
    if let tail, tail.isEmpty { throw error("missing '<\(description.name)>' after '--'") }
    if tail == nil, !description.isOptional {
      throw error("missing expected argument '-- <\(description.name)> ...'")
    }
  }

  private func selectedContainer(_ variable: (String) -> String?) throws(UsageError)
    -> ContainerSelection?
  {
    guard command.needsContainer else { return nil }
    do {
      return try ContainerSelection.resolve(
        group: optionValues["group"]?.last, directory: optionValues["container"]?.last,
        variable: variable)
    } catch {
      throw self.error(error.reason)
    }
  }
}
