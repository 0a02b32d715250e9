import SystemCalls

/// The decision whether a program may use colours.
package enum Colour {
  /// Returns true on a terminal, unless NO_COLOR is set and not empty (https://no-color.org), or
  /// the terminal is dumb.
  package static func isWanted(isTerminal: Bool, variable: (String) -> String?) -> Bool {
    isTerminal && (variable("NO_COLOR") ?? "").isEmpty && variable("TERM") != "dumb"
  }
}
