import PropertyLists

/// Writes a property list as JSON: one line without spaces, keys in the order of their bytes.
///
/// The open containers are kept in an array, not on the stack. The text reads back as an equal value;
/// `TaggedScalar` describes how values that JSON lacks are written.
struct JSONWriter {
  private var output: [UInt8] = []
  private var open: [OpenContainer] = []

  /// The text, without a line break at its end.
  ///
  /// - Throws: `JSONError` when the value is nested deeper than the reader would accept.
  static func bytes(_ value: PropertyListValue) throws(JSONError) -> [UInt8] {
    var writer = JSONWriter()
    try writer.begin(value)
    while let innermost = writer.open.indices.last {
      try writer.continueContainer(innermost)
    }
    return writer.output
  }

  static func string(_ value: PropertyListValue) throws(JSONError) -> String {
    String(decoding: try bytes(value), as: UTF8.self)
  }

  private mutating func begin(_ value: PropertyListValue) throws(JSONError) {
    switch value {
    case .string(let text): write(quoted: text)
    case .integer(let integer): write(String(integer))
    case .unsigned(let integer): write(String(integer))
    case .real(let real): write(TaggedScalar.text(real))
    case .boolean(let boolean): write(boolean ? "true" : "false")
    case .date(let date): write(TaggedScalar.text(date))
    case .data(let data): write(TaggedScalar.text(data))
    case .array(let elements):
      write("[")
      try push(.array(elements))
    case .dictionary(let members):
      write("{")
      let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      try push(.dictionary(sorted))
    }
  }

  private mutating func push(_ content: OpenContainer.Content) throws(JSONError) {
    guard open.count < JSONReader.maximumDepth else {
      let depth = JSONReader.maximumDepth
      throw JSONError(
        reason: "arrays and dictionaries are nested more than \(depth) deep")
    }
    open.append(OpenContainer(content: content))
  }

  /// Writes the next element of the innermost container, or its end.
  private mutating func continueContainer(_ innermost: Int) throws(JSONError) {
    let index = open[innermost].next
    open[innermost].next += 1
    switch open[innermost].content {
    case .array(let elements):
      guard index < elements.count else { return close("]") }
      if index > 0 { write(",") }
      try begin(elements[index])
    case .dictionary(let members):
      guard index < members.count else { return close("}") }
      if index > 0 { write(",") }
      let (key, value) = members[index]
      write(quoted: members.count == 1 ? TaggedScalar.escaped(key) : key)
      write(":")
      try begin(value)
    }
  }

  private mutating func close(_ bracket: String) {
    open.removeLast()
    write(bracket)
  }

  private mutating func write(_ text: String) { output += text.utf8 }

  private mutating func write(quoted text: String) {
    output.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""): write("\\\"")
      case UInt8(ascii: "\\"): write("\\\\")
      case 0x08: write("\\b")
      case 0x09: write("\\t")
      case 0x0A: write("\\n")
      case 0x0C: write("\\f")
      case 0x0D: write("\\r")
      case 0..<0x10: write("\\u000" + String(byte, radix: 16))
      case 0x10..<0x20: write("\\u00" + String(byte, radix: 16))
      default: output.append(byte)
      }
    }
    output.append(UInt8(ascii: "\""))
  }
}

/// An array or dictionary that has been written in part.
private struct OpenContainer {
  enum Content {
    case array([PropertyListValue])
    case dictionary([(key: String, value: PropertyListValue)])
  }

  let content: Content
  var next = 0
}
