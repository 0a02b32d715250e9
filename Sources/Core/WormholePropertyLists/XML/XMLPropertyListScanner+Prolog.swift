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
          throw .malformed("it has a control character, which XML does not", at: offset)
        }
      } else if byte == 0xEF, bytes[offset + 1] == 0xBF, bytes[offset + 2] >= 0xBE {
        throw .malformed("it has a non-character, which XML does not", at: offset)
      }
    }
  }

  /// Moves to the `<` of the root element.
  mutating func scanProlog() throws(PropertyListError) {
    if bytes.starts(with: XMLPropertyList.byteOrderMark) { index = 3 }
    if has("<?xml") { try scanDeclaration() }
    try skipSpaceAndComments()
    let start = index
    guard take("<!DOCTYPE") else { return }
    while index < bytes.count, ![0x3C, 0x3E, 0x5B].contains(bytes[index]) { index += 1 }
    guard take(">") else {
      throw .malformed("its document type declares something of its own", at: start)
    }
    try skipSpaceAndComments()
  }

  mutating func scanEpilog() throws(PropertyListError) {
    try skipSpaceAndComments()
    guard index == bytes.count else { throw .malformed("something follows </plist>", at: index) }
  }

  private mutating func scanDeclaration() throws(PropertyListError) {
    let start = index
    let unended = "its XML declaration does not end"
    let content = try skip(past: "?>", orRefuse: unended, at: start)
    guard !bytes[content].contains(UInt8(ascii: ">")) else { throw .malformed(unended, at: start) }
    let end = content.upperBound
    guard var place = content.first(where: { has("encoding", at: $0, inAnyCase: true) }) else {
      return
    }
    place += 8
    guard place < end else { return }
    while place < end, XMLPropertyListScalars.isWhitespace(bytes[place]) || bytes[place] == 0x3D {
      place += 1
    }
    guard
      has("\"utf-8\"", at: place, inAnyCase: true) || has("'utf-8'", at: place, inAnyCase: true)
    else {
      throw PropertyListError(
        .unsupportedEncoding, atByte: start, "it declares an encoding other than UTF-8")
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
