import FoundationEssentials

/// The texts of scalar elements that both CFPropertyList.c and `PropertyListDecoder` accept.
enum XMLPropertyListScalars {
  typealias Text = ArraySlice<UInt8>

  static func isWhitespace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0A || byte == 0x09 || byte == 0x0D
  }

  /// `S*(-|+)?S*[0-9]+` or `S*(-|+)?S*0[xX][0-9a-fA-F]+`, as in CFPropertyList.c.
  static func integer(_ text: Text) -> PropertyListValue? {
    var digits = text.drop(while: isWhitespace)
    let sign = digits.first
    if sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
      digits = digits.dropFirst().drop(while: isWhitespace)
    }
    var radix = 10
    if digits.first == UInt8(ascii: "0"), let x = digits.dropFirst().first, x | 0x20 == 0x78 {
      radix = 16
      digits = digits.dropFirst(2)
    }
    // The initializer would take another sign.
    guard let first = digits.first, ![UInt8(ascii: "-"), UInt8(ascii: "+")].contains(first),
      let magnitude = UInt64(String(decoding: digits, as: UTF8.self), radix: radix)
    else { return nil }
    guard sign == UInt8(ascii: "-") else { return PropertyListValue(magnitude) }
    guard magnitude <= UInt64(1) << 63 else { return nil }
    return .integer(Int64(bitPattern: 0 &- magnitude))
  }

  /// No program writes a number with a longer text, and parsing it would only take time.
  private static let longestReal = 1024

  /// Parses a decimal number, or one of the names of CFPropertyList.c in any case.
  static func real(_ text: Text) -> Double? {
    let text = text.drop(while: isWhitespace)
    guard text.count <= longestReal else { return nil }
    let string = String(decoding: text, as: UTF8.self)
    switch string.lowercased() {
    case "nan": return .nan
    case "inf", "+inf", "infinity", "+infinity": return .infinity
    case "-inf", "-infinity": return -.infinity
    default:
      // The initializer would take hexadecimal numbers and other names, too.
      let isDecimal = text.allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
      return isDecimal ? Double(string) : nil
    }
  }

  /// Parses `YYYY-MM-DDThh:mm:ssZ` with a day and a time of day that exist.
  static func date(_ text: Text) -> Date? {
    guard text.last == UInt8(ascii: "Z"), let time = CalendarTime(text: text.dropLast()) else {
      return nil
    }
    return time.secondsSinceReferenceDate.map {
      Date(timeIntervalSinceReferenceDate: Double($0))
    }
  }

  /// Parses base64 (RFC 4648, section 4) with white space anywhere before the padding and after it.
  /// Foundation alone would accept a padding of another length.
  static func data(_ text: Text) -> Data? {
    let content = text.prefix { $0 != UInt8(ascii: "=") }
    let padding = text[content.endIndex...].prefix { $0 == UInt8(ascii: "=") }
    let sextets = content.filter { !isWhitespace($0) }
    guard padding.count <= 2, (sextets.count + padding.count) % 4 == 0,
      text[padding.endIndex...].allSatisfy(isWhitespace)
    else { return nil }
    return Data(base64Encoded: Data(sextets + padding))
  }
}
