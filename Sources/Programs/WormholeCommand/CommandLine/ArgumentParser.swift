import Wormhole
import WormholeTerminals

/// One pass over a command line, left to right, as the description of the program reads it.
///
/// The conventions are those of swift-argument-parser: `--option value` and `--option=value`, an
/// option's value does not begin with a dash unless it is a number or the lone `-`, options and
/// positionals mix freely, and `--` ends the options. But an option that takes one value is not given
/// two: the last one would count, and hide a slip of the hand.
struct ArgumentParser {
  let arguments: [String]
  private(set) var next = 0
  private(set) var path: [CommandDescription]
  private(set) var operands: [(text: String, place: Int)] = []
  private var optionValues: [String: [String]] = [:]
  private var flags: Set<String> = []
  private(set) var tail: [String]?

  enum Invocation {
    case run(CommandDescription, ParsedArguments)
    /// - Parameter isWhole: false for the first help of a program with many commands.
    case help([CommandDescription], isWhole: Bool)
    /// A command and those below it, for tools.
    case listing([CommandDescription])
    /// A manual page, by its name.
    case manualPage(String)
    /// The recipes, the version, or a script for completion.
    case text(String)
  }

  /// - Parameter arguments: bytes, as the kernel passed them.
  /// - Throws: the part that does not fit, with the command that was reached.
  static func parse(
    _ arguments: [[UInt8]], root: CommandDescription, variable: (String) -> String?
  ) throws(UsageError) -> Invocation {
    var parser: ArgumentParser
    do throws(Misuse) {
      parser = ArgumentParser(arguments: try argumentTexts(arguments), path: [root])
    } catch {
      throw UsageError(reason: error.description, path: [root])
    }
    if let early = try parser.readAll() { return early }
    let parsed = try parser.finished(variable)
    if let problem = parsed.outputProblem ?? parser.command.problem(parsed) {
      throw parser.error(problem)
    }
    return .run(parser.command, parsed)
  }

  var command: CommandDescription { path[path.count - 1] }

  func error(_ reason: String) -> UsageError { UsageError(reason: reason, path: path) }

  /// Reads all arguments, or the beginning of a line that asks for help, the version or a script.
  private mutating func readAll() throws(UsageError) -> Invocation? {
    while next < arguments.count {
      let argument = arguments[next]
      next += 1
      if argument == "--" {
        try readTerminated()
      } else if isOption(argument),
        !command.positionals.contains(where: { $0.markers.contains(argument) })
      {
        if let early = try readOption(argument) { return early }
      } else if argument == "help", path.count == 1 {
        if arguments[next...] == ["recipes"] { return .text(CommandExamples.recipes) }
        let (path, rest) = (try helpPath(), arguments[next...])
        return rest.contains("--json")
          ? .listing(path) : .help(path, isWhole: rest.contains("--all"))
      } else if command.subcommands.isEmpty {
        operands.append((argument, next - 1))
      } else if let subcommand = command.subcommand(named: argument) {
        path.append(subcommand)
      } else {
        throw unknownSubcommand(argument, path, isInHelp: false)
      }
    }
    return nil
  }

  private static let wordsForHelp = ["help", "--help", "-h", "--all", "--json"]

  /// The command after `help`: `notify post`. Further requests for help are skipped.
  private func helpPath() throws(UsageError) -> [CommandDescription] {
    var path = path
    for name in arguments[next...] where !Self.wordsForHelp.contains(name) {
      if isOption(name) { throw unknownOption(name, [.help]) }
      guard let subcommand = path[path.count - 1].subcommand(named: name) else {
        throw unknownSubcommand(name, path, isInHelp: true)
      }
      path.append(subcommand)
    }
    return path
  }

  private func isOption(_ argument: String) -> Bool {
    argument.utf8.count > 1 && argument.utf8.first == UInt8(ascii: "-")
      && !ValueKind.isNegativeNumber(argument)
  }

  /// The words after `--` belong to the other program; a command without one takes them as operands
  /// if the first begins with a dash, or if they are the missing ones. Those up to the next `--`
  /// are operands, too, if the first begins with a dash and an operand is missing.
  private mutating func readTerminated() throws(UsageError) {
    let rest = arguments[next...]
    next = arguments.count
    if command.tail == nil, let first = rest.first, !isOption(first), !areMissing(rest.count) {
      let name = path.map(\.name).joined(separator: " ")
      throw error(
        "'\(name)' runs no command, found '\(first)' after '--', which goes before arguments that "
          + "begin with '-'")
    }
    // No program has such a name, but a number may begin so.
    let isOperand =
      operands.count < command.positionals.count && rest.first?.hasPrefix("-") ?? false
    let own = command.tail == nil ? rest : isOperand ? rest.prefix { $0 != "--" } : []
    operands += zip(own, own.indices).map { ($0, $1) }
    guard command.tail != nil, !isOperand || own.count < rest.count else { return }
    tail = Array(rest.dropFirst(isOperand ? own.count + 1 : 0))
  }

  /// Whether this number of operands, or any number of them, is missing.
  private func areMissing(_ count: Int) -> Bool {
    let missing = command.positionals.dropFirst(operands.count)
    return count <= missing.count || missing.contains(where: \.isRepeating)
  }

  private mutating func readOption(_ argument: String) throws(UsageError) -> Invocation? {
    let options = CommandDescription.options(at: path)
    if let rest = Self.rest(of: argument, afterFlagOf: options) {
      if let early = try readOption(String(argument.prefix(2))) { return early }
      return try readOption(rest)
    }
    let (spelling, attached) = Self.split(argument, options)
    let found = options.first { option in
      spelling == "--\(option.name)" || option.letter.map { spelling == "-\($0)" } ?? false
    }
    guard let option = found else { throw unknownOption(spelling, options) }
    guard let kind = option.kind else {
      if let attached { throw error("the flag '\(spelling)' takes no value, found '\(attached)'") }
      return readFlag(option)
    }
    let text = if let attached { attached } else { try separateValue(of: option) }
    try check(text, against: kind, of: option.spelling)
    if option.name == ArgumentDescription.completionScript.name, path.count == 1 {
      return CompletionShell(rawValue: text).map { .text($0.script(for: path[0])) }
    }
    if option.name == ArgumentDescription.manualPage.name, path.count == 1 {
      return .manualPage(text)
    }
    let earlier = optionValues[option.name] ?? []
    if !option.isRepeating, let first = earlier.first, first != text {
      throw error(
        "'\(option.spelling)' is given twice, as '\(first)' and '\(text)': it takes one value")
    }
    optionValues[option.name] = option.isRepeating ? earlier + [text] : [text]
    return nil
  }

  private mutating func readFlag(_ option: ArgumentDescription) -> Invocation? {
    if option.name == ArgumentDescription.help.name {
      return .help(path, isWhole: arguments.contains("--all"))
    }
    if option.name == ArgumentDescription.version.name, let version = command.version {
      return .text(version + "\n")
    }
    flags.insert(option.name)
    return nil
  }

  private mutating func separateValue(of option: ArgumentDescription) throws(UsageError) -> String {
    guard next < arguments.count, arguments[next] != "--", !isOption(arguments[next]) else {
      throw error("missing value for '\(option.spelling)'")
    }
    next += 1
    return arguments[next - 1]
  }

  /// The `-w5` of `-nw5`, if the first letter is a flag's; nil for anything else.
  private static func rest(
    of argument: String, afterFlagOf options: [ArgumentDescription]
  ) -> String? {
    let letters = argument.dropFirst()
    guard letters.count > 1, let flag = letters.first, flag != "-",
      options.contains(where: { $0.letter == flag && $0.kind == nil })
    else { return nil }
    return "-" + letters.dropFirst()
  }

  /// Splits `--option=value`, and `-w5` of an option that has a letter and a value.
  static func split(
    _ argument: String, _ options: [ArgumentDescription] = []
  ) -> (spelling: String, attached: String?) {
    if !argument.hasPrefix("--"), argument.count > 2,
      let letter = argument.dropFirst().first,
      options.contains(where: { $0.letter == letter && $0.kind != nil })
    {
      return (String(argument.prefix(2)), String(argument.dropFirst(2)))
    }
    guard argument.hasPrefix("--"), let equals = argument.firstIndex(of: "=") else {
      return (argument, nil)
    }
    return (String(argument[..<equals]), String(argument[argument.index(after: equals)...]))
  }

  private func check(_ text: String, against kind: ValueKind, of name: String) throws(UsageError) {
    if let problem = kind.problem(with: text) {
      throw error("the value '\(text)' is invalid for '\(name)': \(problem)")
    }
  }
}

extension ArgumentParser {
  /// Gives the operands to the positionals and looks up the container.
  private func finished(_ variable: (String) -> String?) throws(UsageError) -> ParsedArguments {
    guard command.subcommands.isEmpty else {
      var missing = error("missing subcommand")
      missing.wantsWholeHelp = true
      throw missing
    }
    let positionalValues = try assignedOperands()
    try checkTail()
    if let missing = command.options.first(where: { $0.isRequired && optionValues[$0.name] == nil })
    {
      throw error("missing expected option '\(missing.spelling)'")
    }
    let standards = command.options.compactMap { option in
      option.standard.map { (option.name, $0) }
    }
    return ParsedArguments(
      commandPath: path.dropFirst().map(\.name),
      values: optionValues.merging(positionalValues) { _, positional in positional },
      standards: Dictionary(standards) { $1 }, flags: flags, tail: tail,
      selectedContainer: try selectedName(variable).map { ContainerSelection($0) })
  }

  private func assignedOperands() throws(UsageError) -> [String: [String]] {
    if let line = lineWithTail, let extra = operands.dropFirst(command.positionals.count).first {
      throw error("unexpected argument '\(extra.text)': a command goes after '--': \(line)")
    }
    var rest = operands.map(\.text)[...]
    var assigned: [String: [String]] = [:]
    for positional in command.positionals {
      let taken = rest.prefix(positional.isRepeating ? rest.count : 1)
      rest = rest.dropFirst(taken.count)
      guard positional.isOptional || !taken.isEmpty else {
        throw error("missing expected argument '<\(positional.name)>'")
      }
      for text in taken {
        try check(text, against: positional.kind ?? .text, of: "<\(positional.name)>")
      }
      if !taken.isEmpty { assigned[positional.name] = Array(taken) }
    }
    if rest.count == 1, let extra = rest.first {
      let meant = lineWithSuite.map { ": did you mean \($0)?" } ?? ""
      throw error("unexpected argument '\(extra)'\(meant)")
    }
    if !rest.isEmpty {
      let list = rest.map { "'\($0)'" }.joined(separator: ", ")
      throw error("\(rest.count) unexpected arguments: \(list)")
    }
    return assigned
  }

  /// Whether the words after `--` must be there.
  var isTailNeeded: Bool {
    guard let tail = command.tail, !tail.isOptional else { return false }
    return tail.replacement.map { optionValues[$0] == nil } ?? true
  }

  private func checkTail() throws(UsageError) {
    guard let description = command.tail else { return }
    if let tail, tail.isEmpty { throw error("missing '<\(description.name)>' after '--'") }
    if tail == nil, isTailNeeded {
      throw error("missing expected argument '\(description.synopsis)'")
    }
  }

  private func selectedName(
    _ variable: (String) -> String?
  ) throws(UsageError) -> ContainerSelection.Name? {
    let isUsed =
      command.containerOption.map { optionValues[$0] != nil }
      ?? command.flagWithoutContainer.map { !flags.contains($0) } ?? true
    guard command.needsContainer, isUsed else { return nil }
    do throws(Misuse) {
      let name = try ContainerSelection.Name.chosen(
        option: { optionValues[$0]?.last }, variable: variable)
      if let name { return name }
    } catch {
      throw self.error(error.description)
    }
    throw error(
      "no container is named: give --group ID or --container DIRECTORY, or set "
        + "\(ContainerSelection.groupVariable) or \(ContainerSelection.directoryVariable)")
  }
}

/// The arguments of a command, checked against its description.
struct ParsedArguments: Sendable {
  /// The names that lead to the command, without the name of the program: `["notify", "post"]`.
  let commandPath: [String]
  /// The texts of operands and options by name.
  let values: [String: [String]]
  /// The values of options that are not given.
  let standards: [String: String]
  let flags: Set<String>
  /// The words after `--`; nil without `--`.
  let tail: [String]?
  /// Nil only for a command that needs no container.
  private(set) var selectedContainer: ContainerSelection?

  var container: ContainerSelection {
    guard let selectedContainer else {
      preconditionFailure("'\(commandPath)' is described as a command without a container")
    }
    return selectedContainer
  }

  /// Returns the same arguments for a command whose calls to etcd end at a deadline; see
  /// `ContainerSelection.limit`.
  func limited(until deadline: ContinuousClock.Instant?) -> ParsedArguments {
    var arguments = self
    arguments.selectedContainer?.limit = CallLimit(deadline)
    return arguments
  }

  /// The path that the command works on; nil for a command that brings its own container.
  func usedPath() throws -> String? { try selectedContainer?.path() ?? text("file") }

  func has(_ flag: String) -> Bool { flags.contains(flag) }

  func isGiven(_ name: String) -> Bool { has(name) || values[name] != nil }

  func texts(_ name: String) -> [String] { values[name] ?? standards[name].map { [$0] } ?? [] }

  func text(_ name: String) -> String? { texts(name).last }

  func requiredText(_ name: String) -> String {
    guard let text = text(name) else {
      preconditionFailure("'\(name)' is not a required argument of '\(commandPath)'")
    }
    return text
  }

  /// The value of an option that is one of the words of a type, and has a standard.
  func choice<Choice: RawRepresentable<String>>(_ name: String) -> Choice {
    guard let choice = Choice(rawValue: requiredText(name)) else {
      preconditionFailure("the parser accepts only the words of \(Choice.self) for '\(name)'")
    }
    return choice
  }

  func count(_ name: String) -> Int? { text(name).flatMap(ValueKind.count) }

  func duration(_ name: String) -> Duration? { text(name).flatMap(ValueKind.duration) }

  func unsigned(_ name: String) -> UInt64? { text(name).flatMap(ValueKind.unsigned) }
}
