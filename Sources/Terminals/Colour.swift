import SystemCalls

/// Whether a program may show colours.
package enum Colour {
  /// On a terminal, unless NO_COLOR is set and not empty (https://no-color.org), or the terminal is
  /// a dumb one.
  package static func isWanted(isTerminal: Bool, variable: (String) -> String?) -> Bool {
    isTerminal && (variable("NO_COLOR") ?? "").isEmpty && variable("TERM") != "dumb"
  }
}
