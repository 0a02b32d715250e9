/// The number or truth value at the beginning of a string, as the getters of the original read it.
///
/// They use NSString's `integerValue`, `doubleValue` and `boolValue`
/// (developer.apple.com/documentation/foundation/nsstring/integervalue and its neighbours): white
/// space before the number and any text after it are ignored, a number out of range becomes the
/// nearest one in range, and a string without a number is 0. No locale is used. White space after
/// the sign is allowed, as in swift-corelibs-foundation's Scanner.swift.
struct LeadingNumber {
  private var rest: Substring.UnicodeScalarView
  private var isNegative = false

  private init(_ text: String) {
    rest = text[...].unicodeScalars
    skipSpace()
  }

  static func integer(_ text: String) -> Int {
    var scan = LeadingNumber(text)
    scan.readSign()
    var result = 0
    for digit in scan.digits() {
      let (shifted, overflows) = result.multipliedReportingOverflow(by: 10)
      let step = Int(digit) - 48
      let (sum, carries) =
        scan.isNegative
        ? shifted.subtractingReportingOverflow(step) : shifted.addingReportingOverflow(step)
      guard !overflows, !carries else { return scan.isNegative ? .min : .max }
      result = sum
    }
    return result
  }

  static func real(_ text: String) -> Double {
    var scan = LeadingNumber(text)
    scan.readSign()
    let whole = scan.digits()
    var fraction: [UInt8] = []
    if scan.rest.first == "." {
      scan.rest.removeFirst()
      fraction = scan.digits()
    }
    guard !whole.isEmpty || !fraction.isEmpty else { return 0 }
    let exponent = scan.exponent()
    let plain = (scan.isNegative ? "-" : "") + "0" + Self.text(whole) + "." + Self.text(fraction)
    // `Double` reads every text of this form; too large becomes infinite and too small becomes
    // zero.
    return Double(plain + "0e" + exponent) ?? 0
  }

  /// Returns true for a string that begins with Y, y, T or t, or whose number, after its sign and
  /// leading zeros, begins with a digit other than zero (NSString, `boolValue`).
  static func boolean(_ text: String) -> Bool {
    var scan = LeadingNumber(text)
    if let first = scan.rest.first, "YyTt".unicodeScalars.contains(first) { return true }
    scan.readSign()
    while scan.rest.first == "0" { scan.rest.removeFirst() }
    scan.skipSpace()
    return scan.rest.first.map { ("1"..."9").contains($0) } ?? false
  }

  // MARK: Parts

  private mutating func skipSpace() {
    while let first = rest.first, first.properties.isWhitespace { rest.removeFirst() }
  }

  private mutating func readSign() {
    guard let first = rest.first, first == "-" || first == "+" else { return }
    isNegative = first == "-"
    rest.removeFirst()
    skipSpace()
  }

  private mutating func digits() -> [UInt8] {
    var digits: [UInt8] = []
    while let first = rest.first, ("0"..."9").contains(first) {
      digits.append(UInt8(ascii: first))
      rest.removeFirst()
    }
    return digits
  }

  /// Reads the digits after an "e", with their sign. Without digits the "e" belongs to the
  /// following text.
  private mutating func exponent() -> String {
    guard rest.first == "e" || rest.first == "E" else { return "0" }
    rest.removeFirst()
    var sign = ""
    if let first = rest.first, first == "-" || first == "+" {
      sign = String(Character(first))
      rest.removeFirst()
    }
    let digits = digits()
    return digits.isEmpty ? "0" : sign + Self.text(digits)
  }

  private static func text(_ digits: [UInt8]) -> String { String(decoding: digits, as: UTF8.self) }
}
