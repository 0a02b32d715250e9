import WormholePropertyLists
import WormholeTerminals

/// Writes a property list as JSON, with the keys in byte order: on one line without spaces, or on
/// indented lines.
///
/// Characters that control a terminal are escaped. The text reads back as an equal value; `TaggedScalar`
/// describes how values that JSON lacks are written.
struct JSONWriter {
  private var output: [UInt8] = []
  private let isPretty: Bool
  private let texts: [String: [UInt8]]

  /// The text, without a final line break; throws if the value is too deep for the reader.
  ///
  /// - Parameter texts: JSON that stands in place of values of the outermost dictionary, by their keys.
  static func bytes(
    _ value: PropertyListValue, isPretty: Bool = false, texts: [String: [UInt8]] = [:]
  ) throws(JSONError) -> [UInt8] {
    var writer = JSONWriter(isPretty: isPretty, texts: texts)
    try writer.write(value, depth: 0)
    return writer.output
  }

  /// The same for any value that this program prints.
  static func string(_ value: some Encodable, _ dates: JSONDates = .exact) throws -> String {
    String(decoding: try bytes(PropertyListValue(json: value, dates)), as: UTF8.self)
  }

  private mutating func write(_ value: PropertyListValue, depth: Int) throws(JSONError) {
    switch value {
    case .string(let text): write(quoted: text)
    case .integer, .unsigned, .boolean: write(value.description)
    case .real(let real): write(TaggedScalar.text(real))
    case .date(let date): write(TaggedScalar.text(date))
    case .data(let data): write(TaggedScalar.text(data))
    case .array(let elements):
      try write(elements.map { (nil, $0) }, between: ("[", "]"), depth: depth)
    case .dictionary(let members):
      let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      try write(sorted.map { ($0.key, $0.value) }, between: ("{", "}"), depth: depth)
    }
  }

  private mutating func write(
    _ parts: [(key: String?, value: PropertyListValue)], between brackets: (String, String),
    depth: Int
  ) throws(JSONError) {
    let maximum = JSONReader.maximumDepth
    guard depth < maximum else {
      throw JSONError(reason: "arrays and dictionaries are nested more than \(maximum) deep")
    }
    write(brackets.0)
    for (index, (key, value)) in parts.enumerated() {
      if index > 0 { write(",") }
      breakLine(depth + 1)
      if let key {
        write(quoted: parts.count == 1 ? TaggedScalar.escaped(key) : key)
        write(isPretty ? ": " : ":")
      }
      if depth == 0, let key, let text = texts[key] {
        output += text
      } else {
        try write(value, depth: depth + 1)
      }
    }
    if !parts.isEmpty { breakLine(depth) }
    write(brackets.1)
  }

  private mutating func breakLine(_ depth: Int) {
    if isPretty { write("\n" + String(repeating: "  ", count: depth)) }
  }

  private mutating func write(_ text: String) { output += text.utf8 }

  private mutating func write(quoted text: String) {
    output.append(UInt8(ascii: "\""))
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x22: write("\\\"")
      case 0x5C: write("\\\\")
      case 0x08: write("\\b")
      case 0x09: write("\\t")
      case 0x0A: write("\\n")
      case 0x0C: write("\\f")
      case 0x0D: write("\\r")
      case 0x20..<0x7F: output.append(UInt8(scalar.value))
      case _ where scalar.controlsTerminal: write("\\u" + scalar.value.padded(to: 4, radix: 16))
      default: output += String(scalar).utf8
      }
    }
    output.append(UInt8(ascii: "\""))
  }
}

extension PropertyListValue {
  /// The largest value that is written in a line at all.
  private static let largestValue = 65_536

  /// A value within a line for people: JSON, cut if it is long; nil if it is too large, or if JSON
  /// cannot hold it.
  func shortText(bytes: Int? = nil) -> String? {
    if case .data(let data) = self { return "data of \(data.count) B" }
    guard (bytes ?? 0) <= Self.largestValue else { return nil }
    do {
      let text = try JSONWriter.string(self).onOneLine
      let short = text.shortened
      return short == text ? text : short + (bytes.map { " (\($0) B)" } ?? "")
    } catch {
      return nil
    }
  }
}

extension String {
  /// In characters.
  private static let longest = 160

  /// The text, or its beginning if it is too long for a line.
  var shortened: String { count > Self.longest ? prefix(Self.longest) + "…" : self }
}

/// JSON from an argument, standard input or a program: a value, or an error that names the place.
enum JSONInput {
  /// JSON is at most a few times larger than the largest property list that is read.
  static let maximumBytes = 256 << 20

  /// - Parameter source: the object of an error's sentence: "the message".
  static func read(
    _ bytes: [UInt8], source: String, nulls: JSONReader.Nulls = .refuse
  ) throws -> PropertyListValue {
    try naming(source) { try JSONReader.read(bytes, nulls: nulls) }
  }

  static func readOptional(
    _ bytes: [UInt8], source: String, nulls: JSONReader.Nulls = .refuse
  ) throws -> PropertyListValue? {
    try naming(source) { try JSONReader.readOptional(bytes, nulls: nulls) }
  }

  private static func naming<Value>(_ source: String, _ read: () throws -> Value) throws -> Value {
    do {
      return try read()
    } catch {
      throw CommandError(cannot: "read \(source)", because: error, status: .badData)
    }
  }
}

enum OutputFormat: String, CaseIterable, Sendable {
  case json
  /// JSON on several lines.
  case pretty
  /// A string as its text, data as its bytes.
  case raw
  case plist
  case binary

  /// The printed form: JSON, text and XML end with a line break, data and a binary property list do not.
  ///
  /// - Parameters:
  ///   - object: That of an error's sentence.
  ///   - texts: See `JSONWriter.bytes`.
  func bytes(
    _ value: some Encodable, of object: String, texts: [String: [UInt8]] = [:]
  ) throws -> [UInt8] {
    do {
      let value = try PropertyListValue(json: value)
      switch (self, value) {
      case (.raw, .string(let text)): return Array((text + "\n").utf8)
      case (.raw, .data(let bytes)): return Array(bytes)
      default: break
      }
      switch self {
      case .json, .raw, .pretty:
        var text = try JSONWriter.bytes(value, isPretty: self == .pretty, texts: texts)
        text.append(UInt8(ascii: "\n"))
        return text
      case .plist: return try Array(value.xmlData())
      case .binary: return try value.binaryBytes()
      }
    } catch {
      throw CommandError(cannot: "print \(object)", because: error, status: .badData)
    }
  }
}
