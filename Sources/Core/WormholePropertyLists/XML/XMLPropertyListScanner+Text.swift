extension XMLPropertyListScanner {
  /// Reads the text of a `string` or `key` up to the next tag.
  mutating func scanText() throws(PropertyListError) -> String {
    let start = index
    var text: [UInt8] = []
    var isPlain = true
    while true {
      let pieceStart = index
      while index < bytes.count, bytes[index] != 0x3C, bytes[index] != 0x26 { index += 1 }
      let isEnd = !has("&") && !has("<!")
      if isEnd, isPlain {
        try chargeText(index - start, at: start)
        return String(decoding: bytes[start..<index], as: UTF8.self)
      }
      isPlain = false
      text.append(contentsOf: bytes[pieceStart..<index])
      if isEnd { break }
      if has("&") {
        let scalar = try scanReference()
        text.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
      } else {
        let start = index
        guard take("<![CDATA[") else {
          throw .malformed("markup stands within a text", at: start)
        }
        let content = try skip(past: "]]>", orRefuse: "a CDATA section does not end", at: start)
        text.append(contentsOf: bytes[content])
      }
    }
    try chargeText(index - start, at: start)
    return String(decoding: text, as: UTF8.self)
  }

  private mutating func scanReference() throws(PropertyListError) -> Unicode.Scalar {
    let start = index
    if take("&#") { return try scanNumericReference(from: start) }
    let names: [(StaticString, Unicode.Scalar)] = [
      ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&apos;", "'"), ("&quot;", "\""),
    ]
    for (name, scalar) in names {
      if take(name) { return scalar }
    }
    throw .malformed("a text refers to an entity that XML does not define", at: start)
  }

  /// Reads at most eight digits, as CFPropertyList.c does.
  private mutating func scanNumericReference(
    from start: Int
  ) throws(PropertyListError) -> Unicode.Scalar {
    let radix = take("x") ? 16 : 10
    let digitsStart = index
    var number: UInt32 = 0
    while index < bytes.count, index - digitsStart < 8,
      let digit = Character(Unicode.Scalar(bytes[index])).hexDigitValue, digit < radix
    {
      number = number &* UInt32(radix) &+ UInt32(digit)
      index += 1
    }
    guard index > digitsStart, take(";"), let scalar = Unicode.Scalar(number),
      scalar.value >= 0x20 || [0x09, 0x0A, 0x0D].contains(scalar.value),
      scalar.value != 0xFFFE, scalar.value != 0xFFFF
    else { throw .malformed("a numeric reference is not a character of XML", at: start) }
    return scalar
  }
}
