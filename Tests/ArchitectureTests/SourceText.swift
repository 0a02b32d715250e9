/// A Swift file line by line, with code and comments separated, and without the contents of string
/// literals.
///
/// An interpolation in a string is code. Regular-expression literals are not supported.
struct SourceText {
  struct Line: Equatable {
    /// The code without comments; a string literal leaves its quotes.
    var code = ""
    /// The comment with its slashes or stars.
    var comment = ""

    var trimmedCode: String { Self.trim(code) }
    var trimmedComment: String { Self.trim(comment) }

    private static func trim(_ text: String) -> String {
      // By bytes, because this is most of the work of all checks.
      let blank = [UInt8(ascii: " "), UInt8(ascii: "\t")]
      var rest = text.utf8[...]
      while let first = rest.first, blank.contains(first) { rest.removeFirst() }
      while let last = rest.last, blank.contains(last) { rest.removeLast() }
      return String(Substring(rest))
    }
  }

  /// The first line has the number one in messages.
  let lines: [Line]

  init(_ text: String) {
    var lexer = Lexer(bytes: Array(text.utf8))
    lexer.run()
    lines = lexer.lines
  }
}

private struct Lexer {
  private enum Context {
    /// Code within an interpolation, with the number of open parentheses in it.
    case interpolation(open: Int)
    case string(hashes: Int, isMultiline: Bool)
    case blockComment
    case lineComment
  }

  private let bytes: [UInt8]
  private var position = 0
  private var contexts: [Context] = []
  private var code: [UInt8] = []
  private var comment: [UInt8] = []
  private(set) var lines: [SourceText.Line] = []

  init(bytes: [UInt8]) { self.bytes = bytes }

  mutating func run() {
    while position < bytes.count {
      if bytes[position] == UInt8(ascii: "\n") {
        endLine()
        position += 1
        continue
      }
      switch contexts.last {
      case nil, .interpolation: stepInCode()
      case .string(let hashes, let isMultiline):
        stepInString(hashes: hashes, isMultiline: isMultiline)
      case .blockComment: stepInBlockComment()
      case .lineComment: takeComment(count(until: "\n"))
      }
    }
    endLine()
  }

  private mutating func endLine() {
    if case .lineComment = contexts.last { contexts.removeLast() }
    lines.append(
      SourceText.Line(
        code: String(decoding: code, as: UTF8.self),
        comment: String(decoding: comment, as: UTF8.self)))
    code = []
    comment = []
  }

  private mutating func stepInCode() {
    if starts("//") {
      contexts.append(.lineComment)
    } else if starts("/*") {
      contexts.append(.blockComment)
      takeComment(2)
    } else if let (hashes, quotes) = openingQuotes() {
      contexts.append(.string(hashes: hashes, isMultiline: quotes == 3))
      takeCode(hashes + quotes)
    } else {
      countParentheses()
      takeCode(max(1, count(until: "/#\"()\n")))
    }
  }

  private mutating func countParentheses() {
    guard case .interpolation(let open) = contexts.last else { return }
    if starts("(") {
      contexts[contexts.count - 1] = .interpolation(open: open + 1)
    } else if starts(")") {
      contexts.removeLast()
      if open > 1 { contexts.append(.interpolation(open: open - 1)) }
    }
  }

  private mutating func stepInString(hashes: Int, isMultiline: Bool) {
    let hashMarks = String(repeating: "#", count: hashes)
    if starts("\\" + hashMarks + "(") {
      position += 1 + hashes
      contexts.append(.interpolation(open: 1))
      takeCode(1)
    } else if starts("\\" + hashMarks) {
      // The escaped character, unless it ends the line of a multi-line string.
      position += 1 + hashes
      if position < bytes.count, bytes[position] != UInt8(ascii: "\n") { position += 1 }
    } else if starts((isMultiline ? "\"\"\"" : "\"") + hashMarks) {
      contexts.removeLast()
      takeCode((isMultiline ? 3 : 1) + hashes)
    } else {
      position += max(1, count(until: "\\\"\n"))
    }
  }

  private mutating func stepInBlockComment() {
    if starts("/*") {
      contexts.append(.blockComment)
      takeComment(2)
    } else if starts("*/") {
      contexts.removeLast()
      takeComment(2)
    } else {
      takeComment(1)
    }
  }

  /// Returns the number of hashes and quotes of a string literal that begins here.
  private func openingQuotes() -> (hashes: Int, quotes: Int)? {
    var index = position
    while index < bytes.count, bytes[index] == UInt8(ascii: "#") { index += 1 }
    let hashes = index - position
    while index < bytes.count, bytes[index] == UInt8(ascii: "\""), index < position + hashes + 3 {
      index += 1
    }
    switch index - position - hashes {
    case 0: return nil
    case 3: return (hashes, 3)
    default: return (hashes, 1)
    }
  }

  /// Returns the number of bytes before the first of the given bytes.
  private func count(until ends: StaticString) -> Int {
    var index = position
    while index < bytes.count {
      for end in 0..<ends.utf8CodeUnitCount where bytes[index] == ends.utf8Start[end] {
        return index - position
      }
      index += 1
    }
    return index - position
  }

  private func starts(_ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard position + count <= bytes.count else { return false }
    return (0..<count).allSatisfy { bytes[position + $0] == text.utf8Start[$0] }
  }

  private func starts(_ text: String) -> Bool {
    bytes[position...].starts(with: text.utf8)
  }

  private mutating func takeCode(_ count: Int) {
    code.append(contentsOf: bytes[position..<position + count])
    position += count
  }

  private mutating func takeComment(_ count: Int) {
    comment.append(contentsOf: bytes[position..<position + count])
    position += count
  }
}
