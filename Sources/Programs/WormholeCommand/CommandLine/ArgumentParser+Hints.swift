import WormholeWorkshop

// What a line that does not fit probably means, as a line that can be typed.

extension ArgumentParser {
  func unknownOption(_ spelling: String, _ options: [ArgumentDescription]) -> UsageError {
    if let line = lineWithTail ?? (spelling == "-c" ? lineWithShell : nil) {
      return error("unknown option '\(spelling)': a command goes after '--': \(line)")
    }
    let known = options.map { "--\($0.name)" }
    let similar =
      Suggestion.option(for: spelling, among: known)
      ?? Suggestion.nearest(to: spelling, among: known)
    let question = similar.map { "did you mean '\($0)'?" }
    let hint =
      command.subcommands.isEmpty
      ? "an argument that begins with '-' and is not an option goes after '--'"
      : ownerOfLetter(spelling) ?? "a subcommand's options go after its name"
    return error("unknown option '\(spelling)': \(question ?? hint)")
  }

  /// The hint for an option with one letter that a subcommand has, as flock(1) has -n.
  private func ownerOfLetter(_ spelling: String) -> String? {
    let owner = command.shownSubcommands.first { subcommand in
      subcommand.options.contains { $0.letter.map { spelling == "-\($0)" } ?? false }
    }
    return owner.map {
      "it is an option of '\((path.map(\.name) + [$0.name]).joined(separator: " "))'"
    }
  }

  /// The command line with the `--` that was forgotten before the command of another program; nil if
  /// the operands are not more than expected.
  var lineWithTail: String? {
    let isNeeded = command.tail.map { !$0.isOptional } ?? false
    // A list takes every operand; where a command must follow, it is probably the second.
    guard command.tail != nil, tail == nil,
      isNeeded || !command.positionals.contains(where: \.isRepeating),
      let first = operands.dropFirst(command.positionals.count).first
    else { return nil }
    return line(arguments[..<first.place] + ["--"] + arguments[first.place...])
  }

  /// The command line for a `-c`, as shells and flock(1) have it; nil if no command may follow.
  private var lineWithShell: String? {
    guard command.tail != nil, tail == nil else { return nil }
    return line(arguments[..<(next - 1)] + ["--", "sh", "-c"] + arguments[next...])
  }

  /// A command line that can be typed, in quotation marks.
  private func line(_ arguments: some Sequence<String>) -> String {
    "'\(([path[0].name] + arguments.map(\.quotedForShell)).joined(separator: " "))'"
  }

  /// - Parameter isInHelp: Whether it was looked up behind `help`, where the rest of the line counts for
  ///   nothing.
  func unknownSubcommand(
    _ name: String, _ path: [CommandDescription], isInHelp: Bool
  ) -> UsageError {
    let names = path.last?.shownSubcommands.map(\.name) ?? []
    let commandName = path.map(\.name).joined(separator: " ")
    guard !names.isEmpty else {
      return UsageError(reason: "'\(commandName)' has no subcommands, found '\(name)'", path: path)
    }
    let helpful = path.count == 1 ? names + ["help"] : names
    let parents = path.dropFirst().map(\.name)
    let words =
      Suggestion.translation(of: name, after: parents)
      ?? Suggestion.nearest(to: name, among: helpful).map { [$0] }
    guard let words else {
      let question = "expected one of \(names.joined(separator: ", "))"
      return UsageError(reason: "unknown subcommand '\(name)': \(question)", path: path)
    }
    let meant =
      isInHelp
      ? line(["help"] + parents + words)
      : line(arguments[..<(next - 1)] + words + arguments[next...])
    return UsageError(reason: "unknown subcommand '\(name)': did you mean \(meant)?", path: path)
  }
}
