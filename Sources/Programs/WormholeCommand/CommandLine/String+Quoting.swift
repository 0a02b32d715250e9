extension String {
  /// An identifier within a sentence.
  var quoted: String { "\"\(self)\"" }

  /// Foreign text must not control the terminal: this escapes control characters except line
  /// breaks, and marks that change the direction of the text after them.
  var withoutControlCharacters: String { escapingControlCharacters { $0 != "\n" } }

  /// The text as one field of a line: a file's name may contain the characters that end a line or a
  /// field.
  var onOneLine: String { escapingControlCharacters { _ in true } }

  private func escapingControlCharacters(where isEscaped: (Unicode.Scalar) -> Bool) -> String {
    unicodeScalars.map { scalar in
      scalar.controlsTerminal && isEscaped(scalar) ? scalar.escaped(asASCII: true) : String(scalar)
    }.joined()
  }
}

extension Unicode.Scalar {
  /// Whether it is a control character (C0, DEL or C1), or a mark of the direction of writing, by
  /// which a text can look like another one.
  var controlsTerminal: Bool {
    properties.generalCategory == .control || properties.isBidiControl
  }
}
