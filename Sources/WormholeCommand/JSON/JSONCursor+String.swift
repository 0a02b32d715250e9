extension JSONCursor {
  /// Reads a string, whose opening quote is the next byte.
  mutating func readString() throws(JSONError) -> String {
    let quote = position
    advance()
    var start = position
    var unescaped: [UInt8] = []
    while let byte {
      switch byte {
      case UInt8(ascii: "\""):
        let rest = bytes[start..<position]
        advance()
        return unescaped.isEmpty
          ? String(decoding: rest, as: UTF8.self)
          : String(decoding: unescaped + rest, as: UTF8.self)
      case UInt8(ascii: "\\"):
        unescaped += bytes[start..<position]
        unescaped += try readEscape().utf8
        start = position
      case 0..<0x20:
        throw error("a string holds control characters only as escapes, such as \\n or \\u0007")
      default: advance()
      }
    }
    throw error("this string has no closing quote", at: quote)
  }

  /// Reads `\n`, `\u00e9` or a pair of surrogates.
  private mutating func readEscape() throws(JSONError) -> String {
    let start = position
    advance()
    let letter = byte
    if letter != nil { advance() }
    switch letter {
    case UInt8(ascii: "\""): return "\""
    case UInt8(ascii: "\\"): return "\\"
    case UInt8(ascii: "/"): return "/"
    case UInt8(ascii: "b"): return "\u{08}"
    case UInt8(ascii: "f"): return "\u{0C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): return String(try readEscapedScalar(from: start))
    default: throw error("unknown escape in a string; a backslash is written \\\\", at: start)
    }
  }

  private mutating func readEscapedScalar(from start: Int) throws(JSONError) -> Unicode.Scalar {
    let first = try readFourHexDigits()
    if let scalar = Unicode.Scalar(first) { return scalar }
    let lone = error(
      "a lone surrogate is no character; surrogates come in pairs, high before low", at: start)
    guard first < 0xDC00, takeLiteral("\\u") else { throw lone }
    let second = try readFourHexDigits()
    guard (0xDC00...0xDFFF).contains(second),
      let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    else { throw lone }
    return scalar
  }

  private mutating func readFourHexDigits() throws(JSONError) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let byte, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
        throw expected("four hexadecimal digits after \\u")
      }
      value = value << 4 | UInt32(digit)
      advance()
    }
    return value
  }
}
