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
    var sextets = 0
    var index = text.startIndex
    while index < text.endIndex, text[index] != UInt8(ascii: "=") {
      let byte = text[index]
      index += 1
      if XMLPropertyListScalars.isWhitespace(byte) { continue }
      guard let sextet = sextet(byte) else { return nil }
      accumulator = accumulator << 6 | sextet
      sextets += 1
      if sextets % 4 == 0 {
        bytes.append(UInt8(truncatingIfNeeded: accumulator >> 16))
        bytes.append(UInt8(truncatingIfNeeded: accumulator >> 8))
        bytes.append(UInt8(truncatingIfNeeded: accumulator))
      }
    }
    let padding = text[index...].prefix { $0 == UInt8(ascii: "=") }.count
    guard text[(index + padding)...].allSatisfy(XMLPropertyListScalars.isWhitespace) else {
      return nil
    }
    switch (sextets % 4, padding) {
    case (0, 0): break
    case (2, 2): bytes.append(UInt8(truncatingIfNeeded: accumulator >> 4))
    case (3, 1):
      bytes.append(UInt8(truncatingIfNeeded: accumulator >> 10))
      bytes.append(UInt8(truncatingIfNeeded: accumulator >> 2))
    default: return nil
    }
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
