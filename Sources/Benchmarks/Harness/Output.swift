import SystemCalls

/// What the program says: results on standard output, everything else on standard error.
enum Output {
  static func line(_ text: String) { write(text + "\n", to: 1) }

  static func problem(_ text: String) { write("benchmarks: \(text)\n", to: 2) }

  /// Shows what is going on, on a terminal only; nil wipes it away.
  static func progress(_ text: String?) {
    guard Program.isTerminal(2) else { return }
    write("\r\u{1B}[K" + (text ?? ""), to: 2)
  }

  private static func write(_ text: String, to descriptor: Int32) {
    do throws(Errno) {
      try Program.write(Array(text.utf8), to: descriptor)
    } catch {
      // Whoever read it is gone, and there is nowhere else to say so.
      Program.exit(74)
    }
  }
}
