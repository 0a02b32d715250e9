extension XMLPropertyListScanner {
  /// Refuses text that is not UTF-8, and characters that XML 1.0 does not have (section 2.2,
  /// `Char`).
  func checkCharacters() throws(PropertyListError) {
    do throws(UTF8.ValidationError) {
      _ = try UTF8Span(validating: bytes.span)
    } catch {
      throw PropertyListError(
        .unsupportedEncoding, atByte: error.byteOffsets.lowerBound, "it is not valid UTF-8")
    }
    for offset in bytes.indices {
      let byte = bytes[offset]
      if byte < 0x20 {
        guard XMLPropertyListScalars.isWhitespace(byte) else {
          throw malformed("it has a control character, which XML does not", at: offset)
        }
      } else if byte == 0xEF, bytes[offset + 1] == 0xBF, bytes[offset + 2] >= 0xBE {
        throw malformed("it has a non-character, which XML does not", at: offset)
      }
    }
  }

  /// Moves to the `<` of the root element.
  mutating func scanProlog() throws(PropertyListError) {
    if bytes.starts(with: XMLPropertyList.byteOrderMark) { index = 3 }
    if has("<?xml") { try scanDeclaration() }
    try skipSpaceAndComments()
    guard has("<!DOCTYPE") else { return }
    let start = index
    index += 9
    while index < bytes.count, ![0x3C, 0x3E, 0x5B].contains(bytes[index]) { index += 1 }
    guard has(">") else {
      throw malformed("its document type declares something of its own", at: start)
    }
    index += 1
    try skipSpaceAndComments()
  }

  mutating func scanEpilog() throws(PropertyListError) {
    try skipSpaceAndComments()
    guard index == bytes.count else { throw malformed("something follows </plist>", at: index) }
  }

  private mutating func scanDeclaration() throws(PropertyListError) {
    let start = index
    while !has("?>") {
      guard index < bytes.count, bytes[index] != UInt8(ascii: ">") else {
        throw malformed("its XML declaration does not end", at: start)
      }
      index += 1
    }
    let end = index
    index += 2
    guard var place = (start..<end).first(where: { matches("encoding", at: $0) }) else { return }
    place += 8
    guard place < end else { return }
    while place < end, XMLPropertyListScalars.isWhitespace(bytes[place]) || bytes[place] == 0x3D {
      place += 1
    }
    guard matches("\"utf-8\"", at: place) || matches("'utf-8'", at: place) else {
      throw PropertyListError(
        .unsupportedEncoding, atByte: start, "it declares an encoding other than UTF-8")
    }
  }

  /// Returns whether lower-case characters, in any case, are at a place.
  // A string's own methods would do, but their generic types cost time at the start of a program.
  private func matches(_ text: StaticString, at offset: Int) -> Bool {
    let count = text.utf8CodeUnitCount
    guard count <= bytes.count - offset else { return false }
    return text.withUTF8Buffer { expected in
      for index in 0..<count {
        let byte = bytes[offset + index]
        let lower = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
        if lower != expected[index] { return false }
      }
      return true
    }
  }
}

/// The recognition of XML property lists.
enum XMLPropertyList {
  static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  /// Returns whether the bytes begin as XML does; throws if they begin as XML in UTF-16 or UTF-32.
  static func isLikely(_ bytes: [UInt8]) throws(PropertyListError) -> Bool {
    let head = bytes.prefix(4)
    let wide =
      head.starts(with: [0xFE, 0xFF]) || head.starts(with: [0xFF, 0xFE])
      || (head.contains(0) && head.contains(UInt8(ascii: "<")))
    guard !wide else {
      throw PropertyListError(
        .unsupportedEncoding, atByte: 0,
        "it is text in UTF-16 or UTF-32, and only UTF-8 is read; convert it with plutil")
    }
    let text = bytes.starts(with: byteOrderMark) ? bytes[3...] : bytes[...]
    return text.first { !XMLPropertyListScalars.isWhitespace($0) } == UInt8(ascii: "<")
  }
}
