import WormholeSystem

/// The output of the program: results on standard output, everything else on standard error.
enum Output {
  static func line(_ text: String) { write(text + "\n", to: 1) }

  static func problem(_ text: String) { write("benchmarks: \(text)\n", to: 2) }

  /// Shows the progress, on a terminal only; nil clears it.
  static func progress(_ text: String?) {
    guard Program.isTerminal(2) else { return }
    write("\r\u{1B}[K" + (text ?? ""), to: 2)
  }

  private static func write(_ text: String, to descriptor: Int32) {
    do throws(Errno) {
      try Program.write(Array(text.utf8), to: descriptor)
    } catch {
      // The reader is gone, and there is no other place for a message.
      Program.exit(74)
    }
  }
}
