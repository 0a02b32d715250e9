extension OptionDescription {
  static let yes = flag("yes", help: "Do not ask. Needed where no terminal can answer.")
}

extension ParsedArguments {
  /// Asks a person at the terminal, unless `--yes` is given.
  ///
  /// - Parameter question: with its question mark.
  /// - Throws: `CommandError` if the answer is not yes, or nobody can be asked.
  func confirm(_ question: String, _ environment: CommandEnvironment) throws {
    guard !has("yes") else { return }
    guard environment.isInputTerminal, environment.errorColumns != nil else {
      throw CommandError(
        verb: "ask", object: "for a confirmation",
        reason: "there is no terminal; --yes does it without asking", status: .usage)
    }
    environment.writeStandardError(Array("\(question.onOneLine) [y/N] ".utf8))
    let answer = String(
      decoding: try environment.withoutTimeLimit(environment.readInput), as: UTF8.self)
    guard ["y", "yes"].contains(answer.prefix { !$0.isNewline }.lowercased()) else {
      throw ExitStatus.no
    }
  }
}
