import WormholeSystem

/// Messages for people: standard error, and a line that is overwritten while the program runs.
enum Terminal {
  static func say(_ line: String) { write(line + "\n", to: 2) }

  /// Shows the progress, on a terminal only.
  static func progress(_ text: String) {
    guard Program.isTerminal(2) else { return }
    write("\r\u{1B}[K" + text, to: 2)
  }

  static func write(_ text: String, to descriptor: Int32) {
    do throws(Errno) {
      try Program.write(Array(text.utf8), to: descriptor)
    } catch {
      // The reader is gone; the exit status still shows the result.
      return
    }
  }
}
