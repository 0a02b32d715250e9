import WormholePropertyLists

/// Reads JSON text (RFC 8259) as a property list.
///
/// It exists because `JSONDecoder` gives dynamic values only through a recursive enum that tries
/// one type after another: that is slow, reads `1.0` as an integer and names no position. Besides
/// what the grammar forbids, it refuses duplicate keys, lone surrogates, a depth over 512, and
/// `null` unless it is to be dropped.
struct JSONReader {
  /// How deeply arrays and dictionaries may be nested; hostile depth must not use up the stack.
  static let maximumDepth = 512

  /// How to treat `null`, which property lists do not have.
  enum Nulls: String, CaseIterable {
    case refuse
    /// A key with this value, and an element with this value, are left out.
    case drop
  }

  private let bytes: [UInt8]
  private let nulls: Nulls
  private var position = 0

  /// - Throws: `JSONError` unless `bytes` are exactly one such value.
  static func read(
    _ bytes: [UInt8], nulls: Nulls = .refuse
  ) throws(JSONError) -> PropertyListValue {
    var reader = try JSONReader(bytes, nulls)
    let value = try reader.readValue(depth: 0)
    guard reader.byte == nil else { throw reader.expected("the end after the value") }
    return value
  }

  /// Reads JSON text; a lone `null` means that there is no value.
  static func readOptional(
    _ bytes: [UInt8], nulls: Nulls = .refuse
  ) throws(JSONError) -> PropertyListValue? {
    var reader = try JSONReader(bytes, nulls)
    reader.skipSpace()
    if reader.takeLiteral("null") {
      reader.skipSpace()
      if reader.byte == nil { return nil }
    }
    return try read(bytes, nulls: nulls)
  }

  /// Reads a value with the space around it, inside `depth` arrays and dictionaries.
  private mutating func readValue(depth: Int) throws(JSONError) -> PropertyListValue {
    skipSpace()
    defer { skipSpace() }
    switch byte {
    case UInt8(ascii: "["): return try readArray(depth: depth)
    case UInt8(ascii: "{"): return try readDictionary(depth: depth)
    case UInt8(ascii: "\""): return .string(try readString())
    case let byte? where byte == UInt8(ascii: "-") || byte.isDigit: return try readNumber()
    default: return try readLiteral()
    }
  }

  private mutating func readLiteral() throws(JSONError) -> PropertyListValue {
    if takeLiteral("true") { return .boolean(true) }
    if takeLiteral("false") { return .boolean(false) }
    let start = position
    if takeLiteral("null") {
      throw error(
        "property lists have no null: leave the key out, or write another value", at: start)
    }
    if takeLiteral("NaN") || takeLiteral("Infinity") {
      throw error(#"JSON has no such number: write {"$real": "nan"}, "inf" or "-inf""#, at: start)
    }
    throw expected("a value")
  }

  private mutating func readArray(depth: Int) throws(JSONError) -> PropertyListValue {
    guard depth < Self.maximumDepth else { throw tooDeep() }
    var elements: [PropertyListValue] = []
    advance()
    skipSpace()
    if take("]") { return .array([]) }
    while true {
      if !takeDroppedNull() { elements.append(try readValue(depth: depth + 1)) }
      if take("]") { return .array(elements) }
      guard take(",") else { throw expected("',' or ']'") }
    }
  }

  private mutating func readDictionary(depth: Int) throws(JSONError) -> PropertyListValue {
    // One more level for {"$data": …} and the like, which are scalars.
    guard depth <= Self.maximumDepth else { throw tooDeep() }
    let start = position
    let members = try readMembers(depth: depth)
    let value: PropertyListValue
    do {
      value = try TaggedScalar.value(of: members)
    } catch {
      throw self.error(error.reason, at: start)
    }
    if depth == Self.maximumDepth, case .dictionary = value { throw tooDeep(at: start) }
    return value
  }

  private mutating func readMembers(depth: Int) throws(JSONError) -> [String: PropertyListValue] {
    var members: [String: PropertyListValue] = [:]
    // Including keys whose value was dropped.
    var keys: Set<String> = []
    advance()
    skipSpace()
    if take("}") { return [:] }
    while true {
      skipSpace()
      let start = position
      guard byte == UInt8(ascii: "\"") else { throw expected("a key in quotes") }
      let key = try readString()
      guard !keys.contains(key) else {
        throw error(
          "the key \"\(key)\" is there already (keys that Unicode calls equivalent are the same)",
          at: start)
      }
      skipSpace()
      guard take(":") else { throw expected("':' after the key") }
      keys.insert(key)
      if !takeDroppedNull() { members[key] = try readValue(depth: depth + 1) }
      if take("}") { return members }
      guard take(",") else { throw expected("',' or '}'") }
    }
  }

  private func tooDeep(at start: Int? = nil) -> JSONError {
    error("arrays and dictionaries are nested more than \(Self.maximumDepth) deep", at: start)
  }
}

// The tokens.
extension JSONReader {
  /// Checks once for all strings that the bytes are valid UTF-8.
  private init(_ bytes: [UInt8], _ nulls: Nulls) throws(JSONError) {
    self.bytes = bytes
    self.nulls = nulls
    do {
      _ = try UTF8Span(validating: bytes.span)
    } catch {
      throw self.error("the text is not valid UTF-8", at: error.byteOffsets.lowerBound)
    }
  }

  private var byte: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func advance() { position += 1 }

  private mutating func skipSpace() {
    while let byte, byte == 0x20 || (0x09...0x0A).contains(byte) || byte == 0x0D { advance() }
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard byte == UInt8(ascii: character) else { return false }
    advance()
    return true
  }

  private mutating func takeLiteral(_ literal: StaticString) -> Bool {
    let end = position + literal.utf8CodeUnitCount
    guard end <= bytes.count else { return false }
    let matches = literal.withUTF8Buffer { $0.elementsEqual(bytes[position..<end]) }
    if matches { position = end }
    return matches
  }

  /// Steps over a `null` that is to be dropped, and the space around it.
  private mutating func takeDroppedNull() -> Bool {
    guard nulls == .drop else { return false }
    skipSpace()
    defer { skipSpace() }
    return takeLiteral("null")
  }

  private mutating func takeDigits() -> Int {
    let start = position
    while let byte, byte.isDigit { advance() }
    return position - start
  }

  private func error(_ reason: String, at offset: Int? = nil) -> JSONError {
    JSONError(position: .init(byteOffset: offset ?? position, in: bytes), reason: reason)
  }

  private func expected(_ what: String) -> JSONError { error("expected \(what), found \(found)") }

  /// The next character, as an error names it.
  private var found: String {
    let scalar = String(decoding: bytes[position...].prefix(4), as: UTF8.self).unicodeScalars.first
    guard let scalar else { return "the end of the text" }
    switch scalar.properties.generalCategory {
    case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator,
      .paragraphSeparator, .nonspacingMark, .enclosingMark:
      return "U+" + scalar.value.padded(to: 4, radix: 16).uppercased()
    default: return "'\(scalar)'"
    }
  }
}

extension JSONReader {
  /// Reads a number: an integer if it is written as one, otherwise the nearest real.
  ///
  /// An integer that does not fit into 64 bits, signed or unsigned, is refused: as a real it would
  /// silently become a different number.
  private mutating func readNumber() throws(JSONError) -> PropertyListValue {
    let start = position
    _ = take("-")
    let leadingZero = byte == UInt8(ascii: "0")
    let digits = takeDigits()
    guard digits > 0 else { throw expected("a digit") }
    if leadingZero, digits > 1 {
      throw error("a number does not begin with 0 unless it is 0 or 0.…", at: start)
    }
    let isInteger = try !takeFraction()
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    guard !isInteger else {
      if let integer = Int64(text) { return .integer(integer) }
      if let unsigned = UInt64(text) { return .unsigned(unsigned) }
      let shown = text.count > 40 ? text.prefix(40) + "…" : text
      throw error(
        "the integer \(shown) does not fit into 64 bits (\(Int64.min) to \(UInt64.max)); "
          + "write it as a string, or as a real with a point or an exponent",
        at: start)
    }
    guard let real = Double(text), real.isFinite else {
      throw error("the number is too large for a real of 64 bits", at: start)
    }
    return .real(real)
  }

  /// Steps over a fraction and an exponent; false if there is neither.
  private mutating func takeFraction() throws(JSONError) -> Bool {
    var found = false
    if take(".") {
      found = true
      guard takeDigits() > 0 else { throw expected("a digit after the point") }
    }
    if take("e") || take("E") {
      found = true
      if !take("+") { _ = take("-") }
      guard takeDigits() > 0 else { throw expected("a digit in the exponent") }
    }
    return found
  }
}

extension JSONReader {
  /// Reads a string, whose opening quote is the next byte.
  private mutating func readString() throws(JSONError) -> String {
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
      "a lone surrogate is not a character; surrogates come in pairs, high before low", at: start)
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

/// Why a text is not JSON for a property list, or a value cannot be written as such.
struct JSONError: Error, Equatable, CustomStringConvertible {
  struct Position: Equatable {
    /// Counted from 1.
    let line: Int
    /// In Unicode scalars, counted from 1.
    let column: Int
    /// In bytes, counted from 0.
    let byteOffset: Int
  }

  /// Nil when there is no text: a value could not be written.
  var position: Position?
  /// What was expected and what was found.
  let reason: String

  var description: String {
    guard let position else { return "cannot be written as JSON: \(reason)" }
    return "bad JSON at line \(position.line), column \(position.column): \(reason)"
  }
}

extension JSONError.Position {
  /// Counted only when there is an error to report, so that reading pays nothing for it.
  init(byteOffset: Int, in bytes: [UInt8]) {
    let before = bytes.prefix(byteOffset)
    let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    line = before.count { $0 == UInt8(ascii: "\n") } + 1
    column = before[lineStart...].count { $0 & 0b1100_0000 != 0b1000_0000 } + 1
    self.byteOffset = byteOffset
  }
}
