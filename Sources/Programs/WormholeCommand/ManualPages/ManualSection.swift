/// A manual page that the program can print, for man(1).
enum ManualSection: String, CaseIterable, Sendable {
  /// The command, from the same description as its help.
  case command = "1"
  /// The format on disk: the article of the documentation.
  case format = "5"

  func page(for root: CommandDescription) -> String {
    switch self {
    case .command: CommandManual(root: root).page
    case .format:
      ArticleManual(
        name: ProgramName.format, summary: "the files of a container on disk",
        source: "\(root.name) \(root.version ?? "")", seeAlso: "\(root.name)(1)",
        markdown: String(decoding: PackageResources.OnDiskFormat_md, as: UTF8.self)
      ).page
    }
  }
}

/// Text in the language of man(7).
enum Roff {
  /// The text without any meaning for the formatter.
  static func escaped(_ text: String) -> String {
    text.map { character in
      switch character {
      case "\\": "\\e"
      // A hyphen that can be copied, and at which no line is broken.
      case "-": "\\-"
      case "'": "\\(aq"
      case "`": "\\(ga"
      case "^": "\\(ha"
      case "~": "\\(ti"
      case "\"": "\\(dq"
      case "…": "..."
      default: String(character)
      }
    }.joined()
  }

  static func bold(_ text: String) -> String { "\\fB\(escaped(text))\\fP" }
  static func italic(_ text: String) -> String { "\\fI\(escaped(text))\\fP" }

  /// A line of text that is already in the language; a dot at its beginning makes no request.
  static func line(_ line: String) -> String { line.hasPrefix(".") ? "\\&" + line : line }

  /// The first line of a page.
  static func title(_ name: String, _ section: ManualSection, source: String) -> String {
    let manual = section == .command ? "User Commands" : "File Formats"
    return """
      .TH "\(escaped(name.uppercased()))" \(section.rawValue) "" "\(escaped(source))" "\(manual)"
      .\\" Names and options stay whole, and lines are not stretched.
      .nh
      .ad l

      """
  }

  /// A heading of the first or second level.
  static func heading(_ text: String, isSub: Bool = false) -> String {
    ".\(isSub ? "SS" : "SH") \"\(escaped(text))\"\n"
  }

  /// A term with its explanation.
  static func item(_ term: String, _ text: String) -> String {
    // Without a text, a macro would take the next request for it.
    ".TP\n\(line(term))\n\(text.isEmpty ? "\\&" : line(text))\n"
  }
}
