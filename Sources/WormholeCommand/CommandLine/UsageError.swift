/// A command line that does not fit the description: exit status 64, with the usage line.
struct UsageError: Error {
  let reason: String
  /// The command that was reached, with those that lead to it; never empty.
  let path: [CommandDescription]
  /// A bare `wormhole` deserves the whole help, not one line of it.
  var wantsWholeHelp = false

  /// What standard error shows, the final line break included.
  func message(columns: Int) -> String {
    let help = HelpText(path: path, columns: columns)
    // Not wrapped: the reason quotes what the user typed.
    let first = "\(path[0].name): \(reason)"
    if wantsWholeHelp { return first + "\n\n" + help.rendered }
    return """
      \(first)
      Usage: \(help.usage(indent: 7))
        See '\(help.helpInvocation)' for more information.

      """
  }
}
