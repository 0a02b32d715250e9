import WormholeSystem

/// The output of a program for people: results on standard output; messages, and a line that is
/// overwritten while the program runs, on standard error.
package enum Terminal {
  package static func print(_ text: String) { write(text + "\n", to: 1) }

  package static func say(_ text: String) { write(text + "\n", to: 2) }

  /// Shows the progress, on a terminal only; an empty text clears it.
  package static func progress(_ text: String) {
    guard Program.isTerminal(2) else { return }
    write("\r\u{1B}[K" + text, to: 2)
  }

  private static func write(_ text: String, to descriptor: Int32) {
    do throws(Errno) {
      try Program.write(text, to: descriptor)
    } catch {
      // The reader is gone; the exit status still shows the result.
      return
    }
  }
}

/// A mistake in the command line.
package struct Misuse: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// The arguments of a program that has flags, and options with one value.
package struct ArgumentList {
  private var rest: ArraySlice<String>

  package init(_ arguments: [String]) { rest = arguments[...] }

  package mutating func next() -> String? { rest.popFirst() }

  /// Takes the value of an option.
  ///
  /// - Parameters:
  ///   - what: What it has to be, in words.
  ///   - parse: Returns nil for any other text.
  package mutating func value<Value>(
    of option: String, _ what: String, _ parse: (String) -> Value?
  ) throws(Misuse) -> Value {
    guard let text = rest.popFirst(), let value = parse(text) else {
      throw Misuse("\(option) needs \(what)")
    }
    return value
  }
}
