/// A module that a file names in an import or in `canImport`.
struct Import: Equatable {
  let module: String
  let line: Int
}

/// All imports of a file: `import X`, `public import X`, `@testable import X`, `import struct X.Y`,
/// `import X.Submodule`, several on a line, attributes on lines of their own, and `canImport(X)`.
func imports(of text: SourceText) -> [Import] {
  let kinds: Set<String> = [
    "struct", "class", "enum", "protocol", "typealias", "func", "let", "var", "actor",
  ]
  let tokens = tokens(of: text)
  var imports: [Import] = []
  for (index, token) in tokens.enumerated() {
    // `import` is a keyword; only after a dot, or as a label, is it a name.
    let isName = index > 0 && tokens[index - 1].text == "."
    let rest = tokens[(index + 1)...].map(\.text).prefix(2)
    switch token.text {
    case "import" where !isName && rest.first != ":":
      guard let first = rest.first else { continue }
      let module = kinds.contains(first) ? rest.last ?? first : first
      imports.append(Import(module: module, line: token.line))
    case "canImport" where rest.first == "(" && rest.count == 2:
      imports.append(Import(module: rest[rest.endIndex - 1], line: token.line))
    default: continue
    }
  }
  return imports
}

/// Words and single signs, in order.
func tokens(of text: SourceText) -> [(text: String, line: Int)] {
  var tokens: [(text: String, line: Int)] = []
  for (index, line) in text.lines.enumerated() {
    var word = ""
    for scalar in line.code.unicodeScalars {
      if scalar == "_" || scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) {
        word.unicodeScalars.append(scalar)
        continue
      }
      if !word.isEmpty { tokens.append((word, index + 1)) }
      word = ""
      // Backticks only quote a name.
      if scalar != " ", scalar != "\t", scalar != "`" { tokens.append((String(scalar), index + 1)) }
    }
    if !word.isEmpty { tokens.append((word, index + 1)) }
  }
  return tokens
}
