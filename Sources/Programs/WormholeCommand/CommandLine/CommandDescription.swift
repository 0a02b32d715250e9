/// One command of the program: its description for the parser, the help and the completion scripts,
/// and its work.
struct CommandDescription: Sendable {
  let name: String
  /// One sentence for the list of subcommands and the first line of the help.
  let abstract: String
  /// The rest of the help; an empty line separates paragraphs.
  var discussion = ""
  var positionals: [PositionalDescription] = []
  var options: [OptionDescription] = []
  /// Options that this command and every command below it accept, at any place in the line.
  var globalOptions: [OptionDescription] = []
  /// `-- COMMAND…`: the words after `--` are the command line of another program, taken verbatim.
  var tail: TailDescription?
  var subcommands: [CommandDescription] = []
  /// The answer to `--version`; only the root has one.
  var version: String?
  /// False for a command that brings its own container.
  var needsContainer = true
  /// The option without which the command uses no container; nil if it always uses one.
  var containerOption: String?
  /// Not shown to people: the completion scripts ask it.
  var isHidden = false
  /// A condition on several arguments at once: returns the problem, or nil; see `refusing`.
  var problem: @Sendable (ParsedArguments) -> String? = { _ in nil }
  /// The work; nil for a command with subcommands. It throws an error whose exit status
  /// `ExitStatus(of:)` gives, or a status itself if there is nothing to report.
  let run: (@Sendable (ParsedArguments, CommandEnvironment) throws -> Void)?

  /// The command with a condition on several arguments at once, which returns the problem, or nil.
  func refusing(_ problem: @escaping @Sendable (ParsedArguments) -> String?) -> CommandDescription {
    var command = self
    command.problem = problem
    return command
  }

  /// The arguments after the options: the operands, and the other program's command line.
  var operands: [(name: String, synopsis: String, help: String)] {
    positionals.map { ($0.name, $0.synopsis, $0.help) }
      + (tail.map { [($0.name, $0.synopsis, $0.help)] } ?? [])
  }

  var shownSubcommands: [CommandDescription] { subcommands.filter { !$0.isHidden } }

  func subcommand(named name: String) -> CommandDescription? {
    subcommands.first { $0.name == name }
  }
}

/// An argument known by its place.
struct PositionalDescription: Sendable {
  let name: String
  let help: String
  var kind = ValueKind.text
  var isOptional = false
  /// Takes all remaining operands; only the last positional may.
  var isRepeating = false
  /// Words that begin with a dash, and are operands here, not options: `-int`.
  var markers: [String] = []

  static func operand(
    _ name: String, _ kind: ValueKind = .text, help: String, markers: [String] = []
  ) -> Self {
    Self(name: name, help: help, kind: kind, markers: markers)
  }

  static func optional(_ name: String, _ kind: ValueKind = .text, help: String) -> Self {
    Self(name: name, help: help, kind: kind, isOptional: true)
  }

  static func list(
    _ name: String, _ kind: ValueKind = .text, help: String, markers: [String] = []
  ) -> Self {
    Self(name: name, help: help, kind: kind, isRepeating: true, markers: markers)
  }

  static func optionalList(_ name: String, _ kind: ValueKind = .text, help: String) -> Self {
    Self(name: name, help: help, kind: kind, isOptional: true, isRepeating: true)
  }

  /// The form in a usage line: `<a>`, `[<a>]`, `<a> ...`, `[<a> ...]`.
  var synopsis: String {
    let form = isRepeating ? "<\(name)> ..." : "<\(name)>"
    return isOptional ? "[\(form)]" : form
  }
}

/// An argument known by its name: a flag, or an option with one value.
struct OptionDescription: Sendable {
  /// Without the leading dashes.
  let name: String
  /// The one-letter form, without the dash.
  var letter: Character?
  /// Nil for a flag.
  var value: Value?
  let help: String
  /// Whether the option may be repeated; otherwise the last one counts.
  var isRepeating = false

  struct Value: Sendable {
    let name: String
    let kind: ValueKind
    var standard: String?
  }

  static func flag(_ name: String, letter: Character? = nil, help: String) -> Self {
    Self(name: name, letter: letter, value: nil, help: help)
  }

  /// - Parameter valueName: Stands for the value in the help; nil for the kind's own name.
  static func value(
    _ name: String, letter: Character? = nil, _ kind: ValueKind, named valueName: String? = nil,
    standard: String? = nil, help: String, isRepeating: Bool = false
  ) -> Self {
    let value = Value(name: valueName ?? kind.name, kind: kind, standard: standard)
    return Self(name: name, letter: letter, value: value, help: help, isRepeating: isRepeating)
  }

  /// The long form with its value: `--count <n>`.
  var spelling: String { value.map { "--\(name) <\($0.name)>" } ?? "--\(name)" }

  /// Offered by every command.
  static let help = flag("help", letter: "h", help: "Show help information.")
  /// Offered by a command with a version.
  static let version = flag("version", help: "Show the version.")
  /// Offered by the root.
  static let completionScript = value(
    "generate-completion-script", .choice(CompletionShell.allCases.map(\.rawValue)), named: "shell",
    help: "Print a completion script for a shell.")
  /// Offered by the root.
  static let manualPage = value(
    "generate-manual-page", .choice(ManualSection.allCases.map(\.rawValue)), named: "section",
    help: "Print a manual page for man(1): 1 explains the commands, 5 the files of a container.")
}

/// The command line of another program, after `--`.
struct TailDescription: Sendable {
  let name: String
  let help: String
  var isOptional = false

  /// - Parameter noun: The reason for a run of the command: "message".
  static func forEach(_ noun: String) -> Self {
    Self(
      name: "command",
      help: "Run for each \(noun), with the \(noun) on standard input, instead of printing it.",
      isOptional: true)
  }

  var synopsis: String { isOptional ? "[-- <\(name)> ...]" : "-- <\(name)> ..." }
}

extension CommandDescription {
  /// The options of the last command of `path`, in the order in which the help lists them.
  static func options(at path: [CommandDescription]) -> [OptionDescription] {
    guard let command = path.last else { return [] }
    var options = command.options + globalOptions(at: path)
    if path.count == 1 { options += [.completionScript, .manualPage] }
    if command.version != nil { options.append(.version) }
    return options + [.help]
  }

  /// None for a command that needs no container.
  static func globalOptions(at path: [CommandDescription]) -> [OptionDescription] {
    guard let command = path.last, command.needsContainer else { return [] }
    return path.flatMap(\.globalOptions)
  }

  /// Every visible command at or below this one, with the commands that lead to it; the root first.
  func paths(below parents: [CommandDescription] = []) -> [[CommandDescription]] {
    let path = parents + [self]
    return [path] + shownSubcommands.flatMap { $0.paths(below: path) }
  }
}
