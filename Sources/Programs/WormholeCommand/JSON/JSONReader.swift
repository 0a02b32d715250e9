import PropertyLists

/// Reads JSON text (RFC 8259) as a property list.
///
/// It exists because `JSONDecoder` gives dynamic values only through a recursive enum that tries one
/// type after the other: that is slow, takes `1.0` for an integer and names no position. Beside what the
/// grammar forbids, it refuses duplicate keys, lone surrogates, `null` and a depth over 512.
struct JSONReader {
  /// How deeply arrays and dictionaries may be nested; hostile depth must not use up the stack.
  static let maximumDepth = 512

  private var cursor: JSONCursor

  /// - Throws: `JSONError` when `bytes` are not one such value and nothing more.
  static func read(_ bytes: [UInt8]) throws(JSONError) -> PropertyListValue {
    var reader = JSONReader(cursor: try JSONCursor(bytes))
    let value = try reader.readValue(depth: 0)
    guard reader.cursor.byte == nil else {
      throw reader.cursor.expected("the end after the value")
    }
    return value
  }

  /// The same, but a lone `null` means that there is no value.
  static func readOptional(_ bytes: [UInt8]) throws(JSONError) -> PropertyListValue? {
    var cursor = try JSONCursor(bytes)
    cursor.skipSpace()
    if cursor.takeLiteral("null") {
      cursor.skipSpace()
      if cursor.byte == nil { return nil }
    }
    return try read(bytes)
  }

  /// Reads a value with the space around it.
  ///
  /// - Parameter depth: the number of arrays and dictionaries around it.
  private mutating func readValue(depth: Int) throws(JSONError) -> PropertyListValue {
    cursor.skipSpace()
    defer { cursor.skipSpace() }
    switch cursor.byte {
    case UInt8(ascii: "["): return try readArray(depth: depth)
    case UInt8(ascii: "{"): return try readDictionary(depth: depth)
    case UInt8(ascii: "\""): return .string(try cursor.readString())
    case let byte? where JSONCursor.beginsNumber(byte): return try cursor.readNumber()
    default: return try readLiteral()
    }
  }

  private mutating func readLiteral() throws(JSONError) -> PropertyListValue {
    if cursor.takeLiteral("true") { return .boolean(true) }
    if cursor.takeLiteral("false") { return .boolean(false) }
    let start = cursor.position
    if cursor.takeLiteral("null") {
      throw cursor.error(
        "property lists have no null: leave the key out, or write another value", at: start)
    }
    if cursor.takeLiteral("NaN") || cursor.takeLiteral("Infinity") {
      throw cursor.error(
        #"JSON has no such number: write {"$real": "nan"}, "inf" or "-inf""#, at: start)
    }
    throw cursor.expected("a value")
  }

  private mutating func readArray(depth: Int) throws(JSONError) -> PropertyListValue {
    guard depth < Self.maximumDepth else { throw tooDeep() }
    var elements: [PropertyListValue] = []
    cursor.advance()
    cursor.skipSpace()
    if cursor.take("]") { return .array([]) }
    while true {
      elements.append(try readValue(depth: depth + 1))
      if cursor.take("]") { return .array(elements) }
      guard cursor.take(",") else { throw cursor.expected("',' or ']'") }
    }
  }

  private mutating func readDictionary(depth: Int) throws(JSONError) -> PropertyListValue {
    // One level more for {"$data": …} and its like, which are scalars.
    guard depth <= Self.maximumDepth else { throw tooDeep() }
    let start = cursor.position
    let members = try readMembers(depth: depth)
    let value: PropertyListValue
    do {
      value = try TaggedScalar.value(of: members)
    } catch {
      throw cursor.error(error.reason, at: start)
    }
    if depth == Self.maximumDepth, case .dictionary = value { throw tooDeep(at: start) }
    return value
  }

  private mutating func readMembers(depth: Int) throws(JSONError) -> [String: PropertyListValue] {
    var members: [String: PropertyListValue] = [:]
    cursor.advance()
    cursor.skipSpace()
    if cursor.take("}") { return [:] }
    while true {
      cursor.skipSpace()
      let start = cursor.position
      guard cursor.byte == UInt8(ascii: "\"") else { throw cursor.expected("a key in quotes") }
      let key = try cursor.readString()
      guard members[key] == nil else {
        throw cursor.error(
          "the key \"\(key)\" is there already (keys that Unicode calls equivalent are the same)",
          at: start)
      }
      cursor.skipSpace()
      guard cursor.take(":") else { throw cursor.expected("':' after the key") }
      members[key] = try readValue(depth: depth + 1)
      if cursor.take("}") { return members }
      guard cursor.take(",") else { throw cursor.expected("',' or '}'") }
    }
  }

  private func tooDeep(at start: Int? = nil) -> JSONError {
    cursor.error(
      "arrays and dictionaries are nested more than \(Self.maximumDepth) deep", at: start)
  }
}
