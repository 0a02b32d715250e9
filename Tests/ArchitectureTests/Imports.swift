import Glibc

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
  guard text.hasCode("mport") else { return [] }
  let tokens = text.tokens
  var imports: [Import] = []
  for (index, token) in tokens.enumerated()
  where token.text == "import" || token.text == "canImport" {
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

/// A word or a single sign of the code, with its line.
typealias Token = (text: String, line: Int)

/// Returns words and single signs, in order.
func makeTokens(of lines: [SourceText.Line]) -> [Token] {
  var tokens: [Token] = []
  for (index, line) in lines.enumerated() where !line.code.isEmpty {
    line.code.withCString { code in
      var rest = code
      while true {
        // Backticks only quote a name.
        rest += strspn(rest, " \t`")
        guard rest.pointee != 0 else { break }
        let length = max(1, strspn(rest, nameParts))
        let word = UnsafeRawBufferPointer(start: rest, count: length)
        tokens.append((String(decoding: word, as: UTF8.self), index + 1))
        rest += length
      }
    }
  }
  return tokens
}

/// The bytes of names, for functions of C, which are faster here than a loop without optimization.
private let nameParts =
  (1...255).map(UInt8.init).filter(isNamePart).map(CChar.init(bitPattern:)) + [0]

/// Returns whether a byte is a letter, a digit, `_`, or not ASCII.
func isNamePart(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
  case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 128...: true
  default: false
  }
}
