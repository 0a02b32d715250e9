/// Base64 with white space anywhere before the padding (RFC 4648, section 4).
///
/// Stricter than Foundation, which skips unknown characters and drops an unpadded end. Such a text
/// was damaged in transit, and guessing would return bytes that were never sent.
enum Base64 {
  /// Returns the bytes that a text encodes; `nil` if the text is not valid.
  static func bytes(of text: ArraySlice<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count / 4 * 3)
    var accumulator: UInt32 = 0
    // How many of its low bits belong to no byte yet.
    var bits = 0
    let content = text.prefix { $0 != UInt8(ascii: "=") }
    for byte in content where !XMLPropertyListScalars.isWhitespace(byte) {
      guard let sextet = sextet(byte) else { return nil }
      accumulator = accumulator << 6 | sextet
      bits += 6
      guard bits >= 8 else { continue }
      bits -= 8
      bytes.append(UInt8(truncatingIfNeeded: accumulator >> UInt32(bits)))
    }
    let end = text[content.endIndex...]
    let padding = end.prefix { $0 == UInt8(ascii: "=") }.count
    guard padding <= 2, bits == 2 * padding,
      end.dropFirst(padding).allSatisfy(XMLPropertyListScalars.isWhitespace)
    else { return nil }
    return bytes
  }

  private static func sextet(_ byte: UInt8) -> UInt32? {
    switch byte {
    case 0x41...0x5A: UInt32(byte - 0x41)
    case 0x61...0x7A: UInt32(byte - 0x61 + 26)
    case 0x30...0x39: UInt32(byte - 0x30 + 52)
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
