import Glibc

/// Returns public declarations without a doc comment directly above (attributes may stand between).
///
/// Members that a standard protocol already documents are exempt.
func undocumentedFindings(in text: SourceText, path: String) -> [Finding] {
  var findings: [Finding] = []
  for (index, line) in text.lines.enumerated() {
    guard let declaration = publicDeclaration(line.trimmedCode) else { continue }
    if declaration.hasPrefix("extension ") {
      findings.append(
        Finding(path, index + 1, "say `public` at each member, not at the extension"))
    } else if !isExempt(declaration), !hasDocumentation(above: index, in: text) {
      findings.append(Finding(path, index + 1, "`public \(declaration)` has no doc comment"))
    }
  }
  return findings
}

/// Returns public types without an example in the doc comment directly above. An iterator needs none, because
/// nobody names it.
func exampleFindings(in text: SourceText, path: String) -> [Finding] {
  let kinds = ["struct ", "class ", "enum ", "protocol ", "actor ", "typealias "]
  return text.lines.enumerated().compactMap { index, line in
    guard let declaration = publicDeclaration(line.trimmedCode),
      kinds.contains(where: declaration.hasPrefix),
      !["struct Iterator:", "class func ", "class var "].contains(where: declaration.hasPrefix),
      !(declaration.hasPrefix("typealias ") && line.code.hasPrefix(" ")),
      !text.lines[..<index].reversed()
        .drop(while: { !$0.trimmedComment.hasPrefix("///") && !$0.trimmedCode.isEmpty })
        .prefix(while: { $0.trimmedCode.isEmpty && $0.trimmedComment.hasPrefix("//") })
        .contains(where: { $0.trimmedComment == "/// ```swift" })
    else { return nil }
    return Finding(path, index + 1, "`public \(declaration)` has no example")
  }
}

/// Returns the text after the modifiers of a line with a public declaration; imports do not count.
private func publicDeclaration(_ code: String) -> String? {
  guard strstr(code, "public") != nil || strstr(code, "open") != nil else { return nil }
  var words = withoutAttributes(code).split(separator: " ")[...]
  var isPublic = false
  while let word = words.first {
    let name = word.prefix { $0 != "(" }
    let isSetter = word.hasSuffix("(set)")
    // `class` is a modifier only before another declaration.
    let isType = word == "class" && !(words.dropFirst().first.map(isMemberWord) ?? false)
    guard isSetter || (modifiers.contains(name) && !isType) else { break }
    if word == "public" || word == "open" { isPublic = true }
    words.removeFirst()
  }
  // `open` is also a name: `open = true`, `open (path)`.
  let introducer = words.first.map { $0.prefix(while: \.isLetter) } ?? ""
  guard isPublic, introducers.contains(introducer) else { return nil }
  return words.joined(separator: " ")
}

private let modifiers: Set<Substring> = [
  "public", "open", "static", "class", "final", "override", "convenience", "required", "mutating",
  "nonmutating", "nonisolated", "indirect", "lazy", "weak", "unowned", "consuming", "borrowing",
  "prefix", "postfix", "infix", "distributed", "dynamic", "isolated", "optional",
]

private let introducers: Set<Substring> = [
  "struct", "class", "enum", "protocol", "actor", "extension", "func", "var", "let", "init",
  "subscript", "typealias", "associatedtype", "macro", "operator", "precedencegroup",
]

private func isMemberWord(_ word: Substring) -> Bool {
  ["func", "var", "let", "subscript", "override", "final", "public", "private(set)"].contains(word)
}

/// Returns the line without its leading attributes.
private func withoutAttributes(_ code: String) -> String {
  var rest = code[...]
  while rest.first == "@" {
    rest = rest.dropFirst().drop { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }
    if rest.first == "(" {
      var depth = 0
      rest = rest.drop { character in
        if character == "(" { depth += 1 }
        if character == ")" { depth -= 1 }
        return depth > 0
      }.dropFirst()
    }
    rest = rest.drop { $0 == " " }
  }
  return String(rest)
}

private func isExempt(_ declaration: String) -> Bool {
  let exempt = [
    "func == ", "func ==(", "func < ", "func <(", "func hash(into", "func encode(to",
    "var description:", "var debugDescription:", "init(from decoder",
    "init(stringLiteral", "init(integerLiteral", "init(floatLiteral", "init(booleanLiteral",
    "func makeIterator()", "func makeAsyncIterator()", "func next() ", "func next(isolation",
    "typealias Element =", "typealias Iterator =", "typealias AsyncIterator =",
    "typealias Failure =", "init(nilLiteral", "init(arrayLiteral", "init(dictionaryLiteral",
  ]
  return exempt.contains { declaration.hasPrefix($0) }
}

private func hasDocumentation(above index: Int, in text: SourceText) -> Bool {
  // An attribute, gathered upwards: its arguments may take several lines.
  var attribute = ""
  for (above, line) in text.lines[..<index].enumerated().reversed() {
    let code = line.trimmedCode
    if code.isEmpty {
      if line.trimmedComment.hasPrefix("///") { return saysSomething(endingAt: above, in: text) }
      if line.trimmedComment.hasPrefix("// swift-format-ignore") { continue }
      return false
    }
    // Around an attribute that older compilers do not know.
    if code == "#endif" || code.hasPrefix("#if hasAttribute(") { continue }
    attribute = code + " " + attribute
    let unclosed = attribute.count { $0 == "(" } - attribute.count { $0 == ")" }
    if unclosed < 0 { continue }
    guard unclosed == 0, attribute.hasPrefix("@"), withoutAttributes(attribute).isEmpty else {
      return false
    }
    attribute = ""
  }
  return false
}

/// Returns whether the block of doc comment that ends at the line has words.
private func saysSomething(endingAt index: Int, in text: SourceText) -> Bool {
  text.lines[...index].reversed()
    .prefix { $0.trimmedCode.isEmpty && $0.trimmedComment.hasPrefix("///") }
    .contains { $0.comment.contains(where: \.isLetter) }
}
