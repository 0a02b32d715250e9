import WormholeTerminals

/// A manual page from an article of the documentation, in the part of Markdown that articles use:
/// headings, paragraphs, lists, tables, code, emphasis and links.
struct ArticleManual {
  let name: String
  let summary: String
  let source: String
  let seeAlso: String
  let markdown: String

  var page: String {
    var text = Roff.title(name, .format, source: source, summary)
    text += Roff.heading("DESCRIPTION")
    var lines = ArraySlice(
      markdown.split(separator: "\n", omittingEmptySubsequences: false).map(String.init))
    while let line = lines.popFirst() { text += block(line, &lines) }
    return text + Roff.heading("SEE ALSO") + Roff.escaped(seeAlso) + "\n"
  }

  private func block(_ line: String, _ rest: inout ArraySlice<String>) -> String {
    if line.hasPrefix("# ") || line.isEmpty { return "" }
    if line.hasPrefix("## ") { return Roff.heading(plain(line.dropFirst(3))) }
    if line.hasPrefix("### ") { return Roff.heading(plain(line.dropFirst(4)), isSub: true) }
    if line.hasPrefix("```") { return code(&rest) }
    if line.hasPrefix("|") { return table(line, &rest) }
    let paragraph = ([line] + take(&rest) { !$0.isEmpty && !startsBlock($0) })
      .map(\.trimmed).joined(separator: " ")
    if let (mark, text) = listItem(paragraph) {
      return ".IP \"\(mark)\" 4\n" + Roff.line(inline(text)) + "\n"
    }
    return ".PP\n" + Roff.line(inline(paragraph)) + "\n"
  }

  private func take(
    _ rest: inout ArraySlice<String>, while condition: (String) -> Bool
  ) -> [String] {
    let taken = rest.prefix(while: condition)
    rest = rest.dropFirst(taken.count)
    return Array(taken)
  }

  private func startsBlock(_ line: String) -> Bool {
    ["#", "```", "|"].contains { line.hasPrefix($0) } || listItem(line) != nil
  }

  private func listItem(_ text: String) -> (mark: String, text: String)? {
    if text.hasPrefix("- ") { return ("\\(bu", String(text.dropFirst(2))) }
    let digits = text.prefix { $0.isNumber }
    guard !digits.isEmpty, text.dropFirst(digits.count).hasPrefix(". ") else { return nil }
    return ("\(digits).", String(text.dropFirst(digits.count + 2)))
  }

  private func code(_ rest: inout ArraySlice<String>) -> String {
    let lines = take(&rest) { !$0.hasPrefix("```") }
    rest = rest.dropFirst()
    return Roff.code(lines)
  }

  // MARK: Tables

  /// Each row as a term, which also fits a narrow terminal: the first cell, and below it the
  /// others, with their headings if there are several.
  private func table(_ first: String, _ rest: inout ArraySlice<String>) -> String {
    let headings = cells(first)
    let rows = take(&rest) { $0.hasPrefix("|") }.dropFirst().map(cells)
    return rows.map { row in
      let texts = zip(headings, row).dropFirst().filter { !$0.1.isEmpty && $0.1 != "–" }
      let lines = texts.map { heading, cell in
        headings.count > 2 ? "\\fI\(inline(heading)):\\fP \(inline(cell))" : inline(cell)
      }
      return Roff.item(inline(row.first ?? ""), lines.map(Roff.line).joined(separator: "\n.br\n"))
    }.joined()
  }

  private func cells(_ row: String) -> [String] {
    var (cells, cell, isEscaped) = ([String](), "", false)
    for character in row.trimmed.dropFirst() {
      if character == "|", !isEscaped {
        cells.append(cell.trimmed)
        cell = ""
      } else if isEscaped || character != "\\" {
        cell += isEscaped && character != "|" ? "\\\(character)" : String(character)
      }
      isEscaped = character == "\\" && !isEscaped
    }
    return cells
  }

  // MARK: Within a line

  private func plain(_ text: Substring) -> String { String(text.filter { $0 != "`" && $0 != "*" }) }

  /// Code and strong text in bold, emphasis in italics, links as their text.
  private func inline(_ text: String) -> String {
    var (result, rest) = ("", text[...])
    while let character = rest.first {
      if let (roff, length) = span(rest) {
        result += roff
        rest = rest.dropFirst(length)
      } else {
        result += Roff.escaped(String(character))
        rest.removeFirst()
      }
    }
    return result
  }

  /// The beginning of a text, if it has its own form.
  private func span(_ text: Substring) -> (roff: String, length: Int)? {
    for (mark, close, render) in Self.spans where text.hasPrefix(mark) {
      let inside = text.dropFirst(mark.count)
      guard let end = inside.firstRange(of: close), end.lowerBound > inside.startIndex,
        mark == "`" || inside.first != " "
      else { continue }
      let content = inside[..<end.lowerBound]
      return (render(String(content)), mark.count + content.count + close.count)
    }
    guard text.hasPrefix("["), let middle = text.firstRange(of: "]("),
      let end = text[middle.upperBound...].firstIndex(of: ")")
    else { return nil }
    let label = text[..<middle.lowerBound].dropFirst()
    return (inline(String(label)), text.distance(from: text.startIndex, to: end) + 1)
  }

  private static let spans: [(mark: String, close: String, render: @Sendable (String) -> String)] =
    [
      ("``", "``", Roff.bold), ("`", "`", Roff.bold), ("**", "**", Roff.bold),
      ("*", "*", Roff.italic), ("<doc:", ">", Roff.italic),
    ]
}
