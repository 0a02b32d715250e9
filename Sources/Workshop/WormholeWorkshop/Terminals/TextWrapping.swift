/// The breaking of sentences into lines for a terminal.
package enum TextWrapping {
  /// Returns a text in lines of at most `columns` characters, with every line after the first
  /// indented by `indent`. Line breaks in the text stay, and a word that is longer than a line is
  /// split.
  ///
  /// - Parameter firstIndent: The columns of the first line that are taken already.
  package static func wrap(_ text: String, columns: Int, indent: Int, firstIndent: Int = 0)
    -> String
  {
    let margin = String(repeating: " ", count: indent)
    var taken = firstIndent
    var lines: [String] = []
    for paragraph in text.split(separator: "\n", omittingEmptySubsequences: false) {
      var line = ""
      for word in paragraph.split(separator: " ") {
        if line.isEmpty {
          line = String(word)
        } else if taken + line.count + 1 + word.count <= columns {
          line += " " + word
        } else {
          lines.append(line)
          line = String(word)
          taken = indent
        }
        // A terminal that wraps by itself would begin the rest at its left edge.
        while line.count > max(1, columns - taken) {
          let rest = line.dropFirst(max(1, columns - taken))
          lines.append(String(line.prefix(max(1, columns - taken))))
          line = String(rest)
          taken = indent
        }
      }
      lines.append(line)
      taken = indent
    }
    return lines.enumerated().map { index, line in
      index == 0 || line.isEmpty ? line : margin + line
    }.joined(separator: "\n")
  }
}

extension String {
  /// Returns the text with blanks up to a number of columns: after it, or before it.
  package func padded(to columns: Int, atRight: Bool = false) -> String {
    let blanks = String(repeating: " ", count: max(0, columns - count))
    return atRight ? blanks + self : self + blanks
  }

  /// The text as one word of a shell's command line.
  package var quotedForShell: String {
    let isPlain = allSatisfy { character in
      character.isASCII
        && (character.isLetter || character.isNumber || "-_./:@%+=,".contains(character))
    }
    return isPlain && !isEmpty ? self : inSingleQuotes
  }

  /// The text in the quotes that every shell takes literally.
  package var inSingleQuotes: String { "'" + replacing("'", with: "'\\''") + "'" }
}
