/// One command that does something: described for the parser and the help, run with what was given.
protocol Subcommand: Sendable {
  /// The names that lead to it, without that of the program.
  static var commandPath: [String] { get }
  static var description: CommandDescription { get }

  /// - Throws: `CommandError`, whose status the program exits with.
  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus
}

extension Subcommand {
  static var commandPath: [String] { [description.name] }
}
