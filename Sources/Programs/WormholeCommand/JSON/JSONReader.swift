import PropertyLists

/// Reads JSON text (RFC 8259) as a property list.
///
/// It exists because `JSONDecoder` gives dynamic values only through a recursive enum that tries one
/// type after the other: that is slow, takes `1.0` for an integer and names no position. Beside what the
/// grammar forbids, it refuses duplicate keys, lone surrogates, `null` and a depth over 512.
///
/// The open containers are kept in an array, not on the stack: hostile depth costs memory only.
struct JSONReader {
  /// How deeply arrays and dictionaries may be nested.
  static let maximumDepth = 512

  private var cursor: JSONCursor
  private var open: [OpenContainer] = []
  /// A scalar, or a container after its end, that is not in its place yet.
  private var finished: PropertyListValue?

  /// - Throws: `JSONError` when `bytes` are not one such value and nothing more.
  static func read(_ bytes: [UInt8]) throws(JSONError) -> PropertyListValue {
    var reader = JSONReader(cursor: try JSONCursor(bytes))
    return try reader.readWhole()
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

  private init(cursor: JSONCursor) { self.cursor = cursor }

  private mutating func readWhole() throws(JSONError) -> PropertyListValue {
    while true {
      cursor.skipSpace()
      try readValueOrOpen()
      while let value = finished {
        finished = nil
        cursor.skipSpace()
        guard let innermost = open.indices.last else {
          guard cursor.byte == nil else { throw cursor.expected("the end after the value") }
          return value
        }
        open[innermost].append(value)
        try readSeparatorOrClose(innermost)
      }
    }
  }

  /// Reads a scalar or an empty container into `finished`, or opens a container up to its first
  /// value.
  private mutating func readValueOrOpen() throws(JSONError) {
    switch cursor.byte {
    case UInt8(ascii: "["):
      try push(.array)
      if cursor.take("]") { try close() }
    case UInt8(ascii: "{"):
      try push(.dictionary)
      if cursor.take("}") { try close() } else { try readKey() }
    case UInt8(ascii: "\""): finished = .string(try cursor.readString())
    case let byte? where JSONCursor.beginsNumber(byte): finished = try cursor.readNumber()
    default: finished = try readLiteral()
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

  private mutating func push(_ kind: OpenContainer.Kind) throws(JSONError) {
    // One level more for {"$data": …} and its like, which are scalars: `close` sees to it.
    guard open.count < Self.maximumDepth + (kind == .dictionary ? 1 : 0) else { throw tooDeep() }
    open.append(OpenContainer(kind: kind, start: cursor.position))
    cursor.advance()
    cursor.skipSpace()
  }

  private func tooDeep(at start: Int? = nil) -> JSONError {
    cursor.error(
      "arrays and dictionaries are nested more than \(Self.maximumDepth) deep", at: start)
  }

  private mutating func readKey() throws(JSONError) {
    cursor.skipSpace()
    let start = cursor.position
    guard cursor.byte == UInt8(ascii: "\"") else { throw cursor.expected("a key in quotes") }
    let key = try cursor.readString()
    guard open[open.count - 1].setKey(key) else {
      throw cursor.error(
        "the key \"\(key)\" is there already (keys that Unicode calls equivalent are the same)",
        at: start)
    }
    cursor.skipSpace()
    guard cursor.take(":") else { throw cursor.expected("':' after the key") }
  }

  private mutating func readSeparatorOrClose(_ innermost: Int) throws(JSONError) {
    switch open[innermost].kind {
    case .array:
      if cursor.take("]") { return try close() }
      guard cursor.take(",") else { throw cursor.expected("',' or ']'") }
    case .dictionary:
      if cursor.take("}") { return try close() }
      guard cursor.take(",") else { throw cursor.expected("',' or '}'") }
      try readKey()
    }
  }

  private mutating func close() throws(JSONError) {
    let container = open.removeLast()
    let value: PropertyListValue
    do {
      value = try container.value()
    } catch {
      throw cursor.error(error.reason, at: container.start)
    }
    if open.count == Self.maximumDepth, case .dictionary = value {
      throw tooDeep(at: container.start)
    }
    finished = value
  }
}

/// An array or dictionary whose end has not been read yet.
private struct OpenContainer {
  enum Kind { case array, dictionary }

  let kind: Kind
  let start: Int
  private var elements: [PropertyListValue] = []
  private var members: [String: PropertyListValue] = [:]
  private var key = ""

  init(kind: Kind, start: Int) {
    self.kind = kind
    self.start = start
  }

  /// False when the key has a value already.
  mutating func setKey(_ key: String) -> Bool {
    self.key = key
    return members[key] == nil
  }

  mutating func append(_ value: PropertyListValue) {
    switch kind {
    case .array: elements.append(value)
    case .dictionary: members[key] = value
    }
  }

  func value() throws(JSONError) -> PropertyListValue {
    switch kind {
    case .array: .array(elements)
    case .dictionary: try TaggedScalar.value(of: members)
    }
  }
}
