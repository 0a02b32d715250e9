import PropertyLists

extension JSONCursor {
  static func beginsNumber(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "-") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  /// Reads a number: an integer if it is written as one, else the nearest real.
  ///
  /// An integer that does not fit into 64 bits, signed or not, is refused: as a real it would
  /// silently be another number.
  mutating func readNumber() throws(JSONError) -> PropertyListValue {
    let start = position
    _ = take("-")
    let leadingZero = byte == UInt8(ascii: "0")
    let digits = takeDigits()
    guard digits > 0 else { throw expected("a digit") }
    if leadingZero, digits > 1 {
      throw error("a number does not begin with 0 unless it is 0 or 0.…", at: start)
    }
    let isInteger = try !takeFraction()
    let text = text(from: start)
    guard !isInteger else {
      if let integer = Int64(text) { return .integer(integer) }
      if let unsigned = UInt64(text) { return .unsigned(unsigned) }
      let shown = text.count > 40 ? text.prefix(40) + "…" : text
      throw error(
        "the integer \(shown) does not fit into 64 bits (\(Int64.min) to \(UInt64.max)); "
          + "write it as a string, or as a real with a point or an exponent",
        at: start)
    }
    guard let real = Double(text), real.isFinite else {
      throw error("the number is too large for a real of 64 bits", at: start)
    }
    return .real(real)
  }

  /// Steps over a fraction and an exponent; false when there is neither.
  private mutating func takeFraction() throws(JSONError) -> Bool {
    var found = false
    if take(".") {
      found = true
      guard takeDigits() > 0 else { throw expected("a digit after the point") }
    }
    if take("e") || take("E") {
      found = true
      if !take("+") { _ = take("-") }
      guard takeDigits() > 0 else { throw expected("a digit in the exponent") }
    }
    return found
  }
}
