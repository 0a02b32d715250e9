import FoundationEssentials

/// Writes XML property lists with the header and the layout of Apple's tools.
///
/// Recursion is at most `PropertyListLimits.deepestNesting` levels deep.
struct XMLPropertyListWriter {
  private var output: [UInt8] = []
  private var depth = 0

  private static let header = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
    "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">

    """

  static func bytes(of value: PropertyListValue) throws(PropertyListError) -> [UInt8] {
    var writer = XMLPropertyListWriter()
    writer.append(header)
    try writer.write(value)
    writer.append("</plist>\n")
    return writer.output
  }

  private mutating func write(_ value: PropertyListValue) throws(PropertyListError) {
    switch value {
    case .string(let string): try writeText(string, in: "string")
    case .integer(let integer): writeLine("<integer>\(integer)</integer>")
    case .unsigned(let integer): writeLine("<integer>\(integer)</integer>")
    case .real(let real): writeLine("<real>\(Self.text(of: real))</real>")
    case .boolean(let boolean): writeLine(boolean ? "<true/>" : "<false/>")
    case .date(let date): try write(date)
    case .data(let data): writeLine("<data>\(data.base64EncodedString())</data>")
    case .array(let array): try write(array)
    case .dictionary(let dictionary): try write(dictionary)
    }
  }

  private mutating func write(_ array: [PropertyListValue]) throws(PropertyListError) {
    guard try open("array", isEmpty: array.isEmpty) else { return }
    for (index, element) in array.enumerated() {
      do throws(PropertyListError) { try write(element) } catch { throw error.below("[\(index)]") }
    }
    close("array")
  }

  private mutating func write(_ dictionary: [String: PropertyListValue]) throws(PropertyListError) {
    guard try open("dict", isEmpty: dictionary.isEmpty) else { return }
    for (key, value) in PropertyListValue.ordered(dictionary) {
      do throws(PropertyListError) {
        try writeText(key, in: "key")
        try write(value)
      } catch {
        throw error.below(key)
      }
    }
    close("dict")
  }

  /// - Returns: Whether content follows, and then the end.
  private mutating func open(_ tag: String, isEmpty: Bool) throws(PropertyListError) -> Bool {
    guard depth < PropertyListLimits.deepestNesting else { throw .tooDeep() }
    writeLine(isEmpty ? "<\(tag)/>" : "<\(tag)>")
    if !isEmpty { depth += 1 }
    return !isEmpty
  }

  private mutating func close(_ tag: String) {
    depth -= 1
    writeLine("</\(tag)>")
  }

  private mutating func write(_ date: Date) throws(PropertyListError) {
    let seconds = date.timeIntervalSinceReferenceDate
    guard CalendarTime.isWritable(seconds) else {
      throw PropertyListError(
        .unrepresentable, "XML has four digits for the year of a date, 0000 to 9999")
    }
    writeLine(
      "<date>\(CalendarTime(secondsSinceReferenceDate: Int(seconds.rounded(.down))))</date>")
  }

  private mutating func writeText(_ string: String, in tag: String) throws(PropertyListError) {
    indent()
    append("<\(tag)>")
    // PropertyListDecoder reads a value "$null" as nil, and fails on a key "$null" and on any
    // longer text that begins with "$null".
    let isNull = tag == "string" && string == "$null"
    let hidden = string.utf8.starts(with: "$null".utf8) && !isNull
    if hidden { append("&#36;") }
    for scalar in string.unicodeScalars.dropFirst(hidden ? 1 : 0) {
      switch scalar {
      case "&": append("&amp;")
      case "<": append("&lt;")
      case ">": append("&gt;")
      case "\r":
        // Every parser that follows the XML standard makes a line feed of a bare carriage return.
        append("&#13;")
      case "\t", "\n": output.append(UInt8(truncatingIfNeeded: scalar.value))
      case "\u{0}"..<" ", "\u{FFFE}", "\u{FFFF}":
        throw PropertyListError(
          .unrepresentable,
          "XML has no way to write the character \(scalar.escaped(asASCII: true)); "
            + "a binary property list has")
      default: output.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
      }
    }
    append("</\(tag)>\n")
  }

  /// Returns the spelling of CFPropertyList.c: the shortest decimal that reads back as the number.
  private static func text(of real: Double) -> String {
    if real.isNaN { return "nan" }
    if real.isInfinite { return real > 0 ? "+infinity" : "-infinity" }
    return String(real)
  }

  private mutating func writeLine(_ text: String) {
    indent()
    append(text + "\n")
  }

  private mutating func indent() {
    output.append(contentsOf: repeatElement(UInt8(ascii: "\t"), count: depth))
  }

  private mutating func append(_ text: String) {
    output.append(contentsOf: text.utf8)
  }
}

extension PropertyListValue {
  /// The current time, or the nearest that XML has digits for: a clock may show any time.
  package static var now: PropertyListValue {
    let seconds = CalendarTime.nearestWritable(Date().timeIntervalSinceReferenceDate)
    return .date(Date(timeIntervalSinceReferenceDate: seconds))
  }
}
