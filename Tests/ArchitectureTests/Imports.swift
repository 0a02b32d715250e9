/// A module that a file names in an import or in `canImport`.
struct Import: Equatable {
  let module: String
  let line: Int
}

/// Returns all imports of a file: `import X`, `public import X`, `@testable import X`, `import
/// struct X.Y`, `import X.Submodule`, several on a line, attributes on separate lines, and
/// `canImport(X)`.
func imports(of text: SourceText) -> [Import] {
  let kinds: Set<String> = [
    "struct", "class", "enum", "protocol", "typealias", "func", "let", "var", "actor",
  ]
  let tokens = tokens(of: text)
  var imports: [Import] = []
  for (index, token) in tokens.enumerated() where ["import", "canImport"].contains(token.text) {
    // `import` is a keyword, except after a dot or as a label.
    let isName = index > 0 && tokens[index - 1].text == "."
    let rest = tokens[(index + 1)...].prefix(2).map(\.text)
    switch token.text {
    case "import" where !isName && rest.first != ":":
      guard let first = rest.first else { continue }
      let module = kinds.contains(first) ? rest.last ?? first : first
      imports.append(Import(module: module, line: token.line))
    case "canImport" where rest.first == "(" && rest.count == 2:
      imports.append(Import(module: rest[1], line: token.line))
    default: continue
    }
  }
  return imports
}

/// Returns words and single signs, in order.
func tokens(of text: SourceText) -> [(text: String, line: Int)] {
  var tokens: [(text: String, line: Int)] = []
  for (index, line) in text.lines.enumerated() {
    var word: [UInt8] = []
    for byte in line.code.utf8 {
      if isNamePart(byte) {
        word.append(byte)
        continue
      }
      if !word.isEmpty { tokens.append((String(decoding: word, as: UTF8.self), index + 1)) }
      word.removeAll(keepingCapacity: true)
      // Backticks only quote a name.
      if !" \t`".utf8.contains(byte) {
        tokens.append((String(UnicodeScalar(byte)), index + 1))
      }
    }
    if !word.isEmpty { tokens.append((String(decoding: word, as: UTF8.self), index + 1)) }
  }
  return tokens
}

/// Returns whether a byte is a letter, a digit, `_`, or not ASCII.
func isNamePart(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
  case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 128...: true
  default: false
  }
}
