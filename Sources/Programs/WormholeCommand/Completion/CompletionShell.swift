/// A shell for which a completion script can be printed.
enum CompletionShell: String, CaseIterable, Sendable {
  case bash
  case zsh
  case fish

  func script(for root: CommandDescription) -> String {
    switch self {
    case .bash: BashCompletion(root: root).script
    case .zsh: ZshCompletion(root: root).script
    case .fish: FishCompletion(root: root).script
    }
  }
}

extension [CommandDescription] {
  /// A path as the scripts write it: "" for the root, "/notify/post" below it.
  var slashed: String { dropFirst().map { "/\($0.name)" }.joined() }

  /// The operands of the command that begin with a dash.
  var markers: [String] { last?.positionals.flatMap(\.markers) ?? [] }
}
