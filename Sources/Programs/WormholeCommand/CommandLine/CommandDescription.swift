/// One command of the program: its description for the parser, the help and the completion scripts,
/// and its work.
struct CommandDescription: Sendable {
  let name: String
  /// One sentence for the list of subcommands and the first line of the help.
  let abstract: String
  /// The rest of the help; an empty line separates paragraphs.
  var discussion = ""
  /// The short help of a program with many commands, if it is not made from the rest.
  var summary = ""
  var arguments: [ArgumentDescription] = []
  /// Options that this command and every command below it accept, at any place in the line.
  var globalOptions: [ArgumentDescription] = []
  var subcommands: [CommandDescription] = []
  /// The answer to `--version`; only the root has one.
  var version: String?
  /// False for a command that brings its own container.
  var needsContainer = true
  /// The option without which the command uses no container; nil if it always uses one.
  var containerOption: String?
  /// The flag with which the command uses no container.
  var flagWithoutContainer: String?
  /// Not shown to people: the completion scripts ask it.
  var isHidden = false
  /// The work; nil for a command with subcommands. It throws an error whose exit status
  /// `ExitStatus(of:)` gives, or a status itself if there is nothing to report.
  var run: (@Sendable (ParsedArguments, CommandEnvironment) throws -> Void)?
  /// The conditions on several arguments at once: returns the problem, or nil; see `refusing`.
  private(set) var problem: @Sendable (ParsedArguments) -> String? = { _ in nil }

  /// The command with a further condition on several arguments at once, which returns the problem,
  /// or nil.
  func refusing(_ further: @escaping @Sendable (ParsedArguments) -> String?) -> CommandDescription {
    var command = self
    command.problem = { [problem] in problem($0) ?? further($0) }
    return command
  }

  var positionals: [ArgumentDescription] { arguments.filter { $0.role == .operand } }

  /// All options that are accepted.
  var options: [ArgumentDescription] { arguments.filter { $0.role == .option } }

  var shownOptions: [ArgumentDescription] { options.filter { !$0.isHidden } }

  /// `-- COMMAND…`: the words after `--` are the command line of another program, taken verbatim.
  var tail: ArgumentDescription? { arguments.first { $0.role == .tail } }

  /// The arguments after the options: the operands, and the other program's command line.
  var operands: [ArgumentDescription] { arguments.filter { $0.role != .option } }

  var shownSubcommands: [CommandDescription] { subcommands.filter { !$0.isHidden } }

  func subcommand(named name: String) -> CommandDescription? {
    subcommands.first { $0.name == name }
  }
}

struct ArgumentDescription: Sendable {
  enum Role {
    /// An operand is known by its place, an option by its name, and the tail is all after `--`.
    case operand, option, tail
  }

  let role: Role
  /// Of an option without the leading dashes.
  let name: String
  let help: String
  /// Nil for a flag.
  var kind: ValueKind?
  /// The one-letter form of an option, without the dash.
  var letter: Character?
  /// Stands for the value of an option in the help.
  var valueName = ""
  /// The value of an option that is not given.
  var standard: String?
  /// Whether an operand or the words after `--` may be missing.
  var isOptional = false
  /// Whether an option must be given.
  var isRequired = false
  /// Takes all remaining operands, as only the last one may; or an option may be repeated.
  var isRepeating = false
  /// The option with which the words after `--` are missing.
  var replacement: String?
  /// Words that begin with a dash, and are operands here, not options: `-int`.
  var markers: [String] = []
  /// Whether an option is accepted and not shown to people.
  var isHidden = false

  var hidden: Self {
    var description = self
    description.isHidden = true
    return description
  }

  static func operand(_ name: String, _ kind: ValueKind = .text, help: String) -> Self {
    Self(role: .operand, name: name, help: help, kind: kind)
  }

  static func optional(_ name: String, _ kind: ValueKind = .text, help: String) -> Self {
    Self(role: .operand, name: name, help: help, kind: kind, isOptional: true)
  }

  static func list(
    _ name: String, _ kind: ValueKind = .text, isOptional: Bool = false, markers: [String] = [],
    help: String
  ) -> Self {
    Self(
      role: .operand, name: name, help: help, kind: kind, isOptional: isOptional,
      isRepeating: true, markers: markers)
  }

  static func flag(
    _ name: String, letter: Character? = nil, help: String
  ) -> Self {
    Self(role: .option, name: name, help: help, letter: letter)
  }

  /// - Parameter valueName: Stands for the value in the help; nil for the kind's own name.
  static func value(
    _ name: String, letter: Character? = nil, _ kind: ValueKind, named valueName: String? = nil,
    standard: String? = nil, isRequired: Bool = false, help: String, isRepeating: Bool = false
  ) -> Self {
    Self(
      role: .option, name: name, help: help, kind: kind, letter: letter,
      valueName: valueName ?? kind.name, standard: standard, isRequired: isRequired,
      isRepeating: isRepeating)
  }

  /// The command line of another program, after `--`.
  ///
  /// - Parameter option: the option with which there is none.
  static func command(
    _ name: String = "command", help: String, replacedBy option: String? = nil
  ) -> Self {
    Self(role: .tail, name: name, help: help, isRepeating: true, replacement: option)
  }

  /// - Parameter noun: What the command is run for, and gets on standard input: "value".
  static func command(forEach noun: String) -> Self {
    command("Run for each \(noun), with the \(noun) on standard input, instead of printing it.")
  }

  /// A command that may be missing.
  static func command(_ help: String) -> Self {
    Self(role: .tail, name: "command", help: help, isOptional: true, isRepeating: true)
  }

  /// The form of an operand in a usage line: `<a>`, `[<a>]`, `<a> ...`, `-- <a> ...`.
  var synopsis: String {
    let form = (role == .tail ? "-- " : "") + "<\(name)>" + (isRepeating ? " ..." : "")
    return isOptional ? "[\(form)]" : form
  }

  /// The long form of an option with its value: `--count <n>`.
  var spelling: String { "--\(name)" + (kind == nil ? "" : " <\(valueName)>") }

  static let help = flag("help", letter: "h", help: "Show help information.")
  static let version = flag("version", help: "Show the version.")
  static let completionScript = value(
    "generate-completion-script", .choice(CompletionShell.allCases.map(\.rawValue)), named: "shell",
    help: "Print a completion script for a shell.")
  static let manualPage = value(
    "generate-manual-page", .identifier, named: "page",
    help:
      "Print a manual page for man(1): 1 is of the program, the name of a command is of that, and "
      + "5 explains the files of a container.")
}

extension CommandDescription {
  /// The options of the last command of `path` that are shown, in the order in which the help lists them.
  static func shownOptions(at path: [CommandDescription]) -> [ArgumentDescription] {
    options(at: path).filter { !$0.isHidden }
  }

  /// The options of the last command of `path`, in the order in which the help lists them.
  static func options(at path: [CommandDescription]) -> [ArgumentDescription] {
    guard let command = path.last else { return [] }
    var options = command.options + globalOptions(at: path)
    if path.count == 1 { options += [.completionScript, .manualPage] }
    if command.version != nil { options.append(.version) }
    return options + [.help]
  }

  /// None for a command that needs no container.
  static func globalOptions(at path: [CommandDescription]) -> [ArgumentDescription] {
    guard let command = path.last, command.needsContainer else { return [] }
    return path.flatMap(\.globalOptions)
  }

  /// Every visible command at or below this one, with the commands that lead to it; the root first.
  func paths(below parents: [CommandDescription] = []) -> [[CommandDescription]] {
    let path = parents + [self]
    return [path] + shownSubcommands.flatMap { $0.paths(below: path) }
  }
}
