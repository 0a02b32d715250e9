import Glibc
import Synchronization

/// A Swift file line by line, with code and comments separated, and without the contents of string
/// literals.
///
/// An interpolation in a string is code. Regular-expression literals are not supported.
final class SourceText: Sendable {
  struct Line: Equatable {
    /// The code without comments; a string literal leaves its quotes.
    let code: String
    /// The comment with its slashes or stars.
    let comment: String
    let trimmedCode: String
    let trimmedComment: String

    fileprivate init(code: [UInt8], comment: [UInt8]) {
      self.code = String(decoding: code, as: UTF8.self)
      self.comment = String(decoding: comment, as: UTF8.self)
      trimmedCode = Self.trim(code)
      trimmedComment = Self.trim(comment)
    }

    private static func trim(_ bytes: [UInt8]) -> String {
      func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
      }
      var (start, end) = (0, bytes.count)
      while start < end, isBlank(bytes[start]) { start += 1 }
      while start < end, isBlank(bytes[end - 1]) { end -= 1 }
      return String(decoding: bytes[start..<end], as: UTF8.self)
    }
  }

  /// The first line has the number one in messages.
  let lines: [Line]
  /// Words and single signs of the code, in order; made once, for the rules that need them.
  var tokens: [Token] {
    made.withLock { made in
      let tokens = made ?? makeTokens(of: lines)
      made = tokens
      return tokens
    }
  }
  private let made = Mutex<[Token]?>(nil)
  private let code: String
  private let comments: String

  init(_ text: String) {
    lines = text.withCString { bytes in
      var lexer = Lexer(bytes: UnsafeBufferPointer(start: bytes, count: text.utf8.count))
      lexer.run()
      return lexer.lines
    }
    code = lines.map(\.code).joined(separator: "\n")
    comments = lines.map(\.comment).joined(separator: "\n")
  }

  /// Returns whether the code has the text in any line: with it a rule passes over a whole file in one call.
  func hasCode(_ text: String) -> Bool { strstr(code, text) != nil }

  /// Returns whether the comments have the text in any line.
  func hasComment(_ text: String) -> Bool { strstr(comments, text) != nil }
}

/// Steps over whole pieces with functions of C, because a loop over bytes is slow without optimization.
private struct Lexer {
  private enum Context {
    /// Code within an interpolation, with the number of open parentheses in it.
    case interpolation(open: Int)
    case string(hashes: Int, isMultiline: Bool)
    case blockComment
    case lineComment
  }

  /// The text, which a zero follows.
  private let bytes: UnsafeBufferPointer<CChar>
  private var position = 0
  private var contexts: [Context] = []
  private var code: [UInt8] = []
  private var comment: [UInt8] = []
  private(set) var lines: [SourceText.Line] = []

  init(bytes: UnsafeBufferPointer<CChar>) { self.bytes = bytes }

  mutating func run() {
    while position < bytes.count {
      if byte(position) == UInt8(ascii: "\n") {
        endLine()
        position += 1
        continue
      }
      switch contexts.last {
      case nil, .interpolation: stepInCode()
      case .string(let hashes, let isMultiline):
        stepInString(hashes: hashes, isMultiline: isMultiline)
      case .blockComment: stepInBlockComment()
      case .lineComment: takeComment(max(1, count(until: "\n")))
      }
    }
    endLine()
  }

  private mutating func endLine() {
    if case .lineComment = contexts.last { contexts.removeLast() }
    lines.append(SourceText.Line(code: code, comment: comment))
    code.removeAll(keepingCapacity: true)
    comment.removeAll(keepingCapacity: true)
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
    let marks = String(repeating: "#", count: hashes)
    let quotes = isMultiline ? "\"\"\"" : "\""
    if starts("\\" + marks + "(") {
      position += 1 + hashes
      contexts.append(.interpolation(open: 1))
      takeCode(1)
    } else if starts("\\" + marks) {
      // The escaped character, unless it ends the line of a multi-line string.
      position += 1 + hashes
      if position < bytes.count, byte(position) != UInt8(ascii: "\n") { position += 1 }
    } else if starts(quotes + marks) {
      contexts.removeLast()
      takeCode(quotes.utf8.count + hashes)
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
      takeComment(max(1, count(until: "/*\n")))
    }
  }

  /// Returns the number of hashes and quotes of a string literal that begins here.
  private func openingQuotes() -> (hashes: Int, quotes: Int)? {
    var index = position
    while byte(index) == UInt8(ascii: "#") { index += 1 }
    let hashes = index - position
    while byte(index) == UInt8(ascii: "\""), index < position + hashes + 3 { index += 1 }
    switch index - position - hashes {
    case 0: return nil
    case 3: return (hashes, 3)
    default: return (hashes, 1)
    }
  }

  /// Returns the byte there, or 0 after the last one.
  private func byte(_ index: Int) -> UInt8 {
    index < bytes.count ? UInt8(bitPattern: bytes[index]) : 0
  }

  /// Returns the number of bytes before the first of the given bytes, or before a zero.
  private func count(until ends: String) -> Int {
    bytes.baseAddress.map { strcspn($0 + position, ends) } ?? 0
  }

  private func starts(_ text: String) -> Bool {
    bytes.baseAddress.map { strncmp($0 + position, text, text.utf8.count) == 0 } ?? false
  }

  private mutating func takeCode(_ count: Int) {
    code.append(contentsOf: UnsafeRawBufferPointer(rebasing: piece(count)))
    position += count
  }

  private mutating func takeComment(_ count: Int) {
    comment.append(contentsOf: UnsafeRawBufferPointer(rebasing: piece(count)))
    position += count
  }

  private func piece(_ count: Int) -> Slice<UnsafeRawBufferPointer> {
    UnsafeRawBufferPointer(bytes)[position..<position + count]
  }
}
