/// A place in the bytes of a JSON text, and the tokens that begin there.
///
/// The bytes are valid UTF-8: `init` checks it once for all strings.
struct JSONCursor {
  let bytes: [UInt8]
  private(set) var position = 0

  init(_ bytes: [UInt8]) throws(JSONError) {
    self.bytes = bytes
    if String(validating: bytes, as: UTF8.self) == nil {
      throw error("the text is not valid UTF-8", at: Self.firstInvalidByte(bytes))
    }
  }

  var byte: UInt8? { position < bytes.count ? bytes[position] : nil }

  mutating func advance() { position += 1 }

  mutating func skipSpace() {
    while let byte, byte == 0x20 || (0x09...0x0A).contains(byte) || byte == 0x0D { advance() }
  }

  /// Steps over `character` if it is the next one.
  mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard byte == UInt8(ascii: character) else { return false }
    advance()
    return true
  }

  mutating func takeLiteral(_ literal: StaticString) -> Bool {
    let end = position + literal.utf8CodeUnitCount
    guard end <= bytes.count else { return false }
    let matches = literal.withUTF8Buffer { $0.elementsEqual(bytes[position..<end]) }
    if matches { position = end }
    return matches
  }

  mutating func takeDigits() -> Int {
    let start = position
    while let byte, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { advance() }
    return position - start
  }

  func text(from start: Int) -> String { String(decoding: bytes[start..<position], as: UTF8.self) }

  func error(_ reason: String, at offset: Int? = nil) -> JSONError {
    JSONError(
      position: JSONPosition(byteOffset: offset ?? position, in: bytes), reason: reason)
  }

  func expected(_ what: String) -> JSONError { error("expected \(what), found \(found)") }

  /// The next character as an error names it.
  private var found: String {
    guard position < bytes.count else { return "the end of the text" }
    let scalar = String(decoding: bytes[position...].prefix(4), as: UTF8.self).unicodeScalars.first
    guard let scalar else { return "the end of the text" }
    switch scalar.properties.generalCategory {
    case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator,
      .paragraphSeparator, .nonspacingMark, .enclosingMark:
      let digits = String(scalar.value, radix: 16, uppercase: true)
      return "U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    default: return "'\(scalar)'"
    }
  }

  private static func firstInvalidByte(_ bytes: [UInt8]) -> Int {
    var codec = UTF8()
    var iterator = bytes.makeIterator()
    var offset = 0
    while case .scalarValue(let scalar) = codec.decode(&iterator) {
      offset += UTF8.width(scalar)
    }
    return offset
  }
}
