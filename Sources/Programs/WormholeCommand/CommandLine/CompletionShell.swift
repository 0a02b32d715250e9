/// A shell for which a completion script can be printed.
///
/// A script only asks: `wormhole complete -- WORDS…`, with the line's words up to the cursor,
/// prints the words that fit. So all shells offer the same, and a script fits every version.
enum CompletionShell: String, CaseIterable, Sendable {
  case bash
  case zsh
  case fish
}
