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
    // It fails if the reader is gone; the exit status still shows the result.
    try? Program.write(text, to: descriptor)
  }
}

package struct Misuse: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// Returns the arguments of a program, by default this one, as text.
///
/// - Throws: `Misuse` for one that is not valid UTF-8: repaired, it could name another file.
package func argumentTexts(
  _ arguments: [[UInt8]] = Array(Program.rawArguments.dropFirst())
) throws(Misuse) -> [String] {
  var texts: [String] = []
  for bytes in arguments {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw Misuse("argument \(texts.count + 1) is not valid UTF-8")
    }
    texts.append(text)
  }
  return texts
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

package enum Palette: Sendable, CaseIterable {
  /// Colors, and the emphasis that goes with them.
  case colours
  /// Bold and inverse, but no colors.
  case emphasis
  /// Characters only.
  case characters

  /// Returns the palette of a program's output: colors on a terminal; emphasis if NO_COLOR is set
  /// and not empty (https://no-color.org); characters on a dumb terminal and in a file.
  package static func wanted(
    isTerminal: Bool = Program.isTerminal(1),
    variable: (String) -> String? = { Program.environment($0) }
  ) -> Palette {
    guard isTerminal, variable("TERM") != "dumb" else { return .characters }
    return (variable("NO_COLOR") ?? "").isEmpty ? .colours : .emphasis
  }
}

/// A character's look, as numbers of the terminal's "select graphic rendition": "1;32".
package struct CellStyle: Hashable, Sendable {
  private let colours: String
  private let emphasis: String

  package static let plain = CellStyle("")

  /// - Parameters:
  ///   - colours: The look with colors.
  ///   - emphasis: The look without colors.
  package init(_ colours: String, withoutColours emphasis: String = "") {
    self.colours = colours
    self.emphasis = emphasis
  }

  func rendition(in palette: Palette) -> String {
    switch palette {
    case .colours: colours
    case .emphasis: emphasis
    case .characters: ""
    }
  }
}

/// The breaking of sentences into lines for a terminal.
package enum TextWrapping {
  /// Returns a text in lines of at most `columns` characters, with every line after the first
  /// indented by `indent`. Line breaks in the text stay, and a word that is longer than a line is
  /// split.
  ///
  /// - Parameter firstIndent: The columns of the first line that are already taken.
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

  /// Returns a text after the lead of its first line, with the other lines indented as far.
  package static func wrap(_ text: String, columns: Int, after lead: String) -> String {
    lead + wrap(text, columns: columns, indent: lead.count, firstIndent: lead.count)
  }
}

extension Unicode.Scalar {
  /// Whether it is a control character (C0, DEL or C1), or a mark of the writing direction, which
  /// can make a text look like another one.
  package var controlsTerminal: Bool {
    properties.generalCategory == .control || properties.isBidiControl
  }
}

extension String {
  /// The text without white space at both ends.
  package var trimmed: String {
    let isBlank: (Character) -> Bool = { $0.isWhitespace }
    return String(drop(while: isBlank).reversed().drop(while: isBlank).reversed())
  }

  /// The text with a capital letter at its beginning.
  package var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }

  package var withoutBlanksAtEnd: String { String(reversed().drop { $0 == " " }.reversed()) }

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
    // A shell drops line breaks at the end of what a command prints.
    let isHidden = unicodeScalars.contains(where: \.controlsTerminal)
    if isHidden, last?.isNewline != true { return printed }
    return isPlain && !isEmpty ? self : inSingleQuotes
  }

  /// The text as printf(1) prints it, in any shell: what controls a terminal cannot be shown there.
  private var printed: String {
    let escaped = unicodeScalars.map { scalar in
      switch scalar {
      case "\\", "%": "\(scalar)\(scalar)"
      case _ where scalar == "'" || scalar.controlsTerminal:
        scalar.utf8.map { "\\" + String(UInt16($0) + 0o1000, radix: 8).dropFirst() }.joined()
      default: String(scalar)
      }
    }
    let format = escaped.joined()
    // Otherwise it would be an option.
    return "\"$(printf '" + (format.hasPrefix("-") ? "\\055" + format.dropFirst() : format) + "')\""
  }

  /// The text in the quotes that every shell takes literally.
  package var inSingleQuotes: String { "'" + replacing("'", with: "'\\''") + "'" }
}

/// Returns a number with the given number of digits after the point.
package func fixed(_ number: Double, _ digits: Int) -> String {
  guard number.isFinite, abs(number) < 1e15 else { return "\(number)" }
  let unit = (0..<digits).reduce(1) { product, _ in product * 10 }
  let parts = Int((abs(number) * Double(unit)).rounded())
  let sign = number < 0 && parts > 0 ? "-" : ""
  guard digits > 0 else { return sign + "\(parts)" }
  let fraction = "\(parts % unit)"
  let zeros = String(repeating: "0", count: digits - fraction.count)
  return sign + "\(parts / unit)." + zeros + fraction
}
