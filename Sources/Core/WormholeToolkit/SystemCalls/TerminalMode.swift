import Glibc
package import WormholeSystem

/// A mode in which a terminal passes on each key at once and echoes none. The former mode returns
/// when this value is released. The corresponding C functions are `tcgetattr` and `tcsetattr`.
package struct TerminalMode: ~Copyable {
  private let terminal: Int32
  private var before = termios()

  /// - Parameter terminal: an open terminal.
  /// - Throws: `.notATerminal`.
  package init(keysAtOnceOn terminal: Int32) throws(Errno) {
    self.terminal = terminal
    var mode = termios()
    _ = try perform(.terminalMode) { tcgetattr(terminal, &mode) }
    before = mode
    cfmakeraw(&mode)
    _ = try perform(.terminalMode) { tcsetattr(terminal, TCSANOW, &mode) }
  }

  deinit {
    var before = before
    // Fails only if the terminal is gone, and its mode with it.
    _ = tcsetattr(terminal, TCSANOW, &before)
  }
}
