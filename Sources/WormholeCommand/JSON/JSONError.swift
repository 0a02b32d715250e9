/// Why a text is not JSON that means a property list, or a value cannot be written as such.
struct JSONError: Error, Equatable, CustomStringConvertible {
  /// Nil when a value could not be written.
  let position: JSONPosition?
  /// What was expected and what was found.
  let reason: String

  var description: String {
    guard let position else { return "cannot be written as JSON: \(reason)" }
    return "bad JSON at line \(position.line), column \(position.column): \(reason)"
  }
}

/// A place in a text.
struct JSONPosition: Equatable, Sendable {
  /// Counted from 1.
  let line: Int
  /// In characters of Unicode (scalars), counted from 1.
  let column: Int
  /// In bytes, counted from 0.
  let byteOffset: Int

  /// Counted only when there is an error to report, so that reading pays nothing for it.
  init(byteOffset: Int, in bytes: [UInt8]) {
    var line = 1
    var column = 1
    for byte in bytes.prefix(byteOffset) {
      if byte == UInt8(ascii: "\n") {
        line += 1
        column = 1
      } else if byte & 0b1100_0000 != 0b1000_0000 {
        column += 1
      }
    }
    self.line = line
    self.column = column
    self.byteOffset = byteOffset
  }
}
