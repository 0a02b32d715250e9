/// Breaking sentences into lines for a terminal.
package enum TextWrapping {
  /// `text` in lines of at most `columns` characters, every line after the first indented by
  /// `indent`; a line break in `text` stays, and a word that is longer than a line is cut at its end.
  ///
  /// - Parameter firstIndent: how much of the first line is taken already.
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
        // On a terminal that wraps by itself the rest would begin at its left edge.
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
