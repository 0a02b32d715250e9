package import FoundationEssentials
import Wormhole
package import WormholePropertyLists

/// The conversions of the typed getters. The quoted rules are the comments of NSUserDefaults.h.
package enum Conversions {
  /// "… it will convert NSNumber values to their NSString representation. If a non-string
  /// non-number value is found, nil will be returned." A boolean becomes "1" or "0". A real becomes
  /// the shortest text that reads back as the same number, without a fraction of zero.
  package static func string(_ value: PropertyListValue) -> String? {
    switch value {
    case .string(let string): string
    case .integer(let integer): String(integer)
    case .unsigned(let integer): String(integer)
    case .boolean(let boolean): boolean ? "1" : "0"
    case .real(let real): text(real)
    case .date, .data, .array, .dictionary: nil
    }
  }

  private static func text(_ real: Double) -> String {
    let text = String(real)
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }

  /// "If the value is an NSNumber, the result of -integerValue will be returned. If the value is an
  /// NSString, it will be converted to NSInteger if possible. If the value is a boolean, it will be
  /// converted to either 1 for YES or 0 for NO. If the value is absent or can't be converted to an
  /// integer, 0 will be returned." A real loses its fraction. A real out of range becomes the
  /// nearest integer, where C leaves the result open.
  package static func integer(_ value: PropertyListValue) -> Int {
    switch value {
    case .string(let string): LeadingNumber.integer(string)
    case .integer(let integer): Int(truncatingIfNeeded: integer)
    case .unsigned(let integer): Int(truncatingIfNeeded: integer)
    case .boolean(let boolean): boolean ? 1 : 0
    case .real(let real): integer(real)
    case .date, .data, .array, .dictionary: 0
    }
  }

  private static func integer(_ real: Double) -> Int {
    if real.isNaN { return 0 }
    return Int(exactly: real.rounded(.towardZero)) ?? (real < 0 ? .min : .max)
  }

  /// "… similar to -integerForKey:, except that it returns a double, and boolean values will not be
  /// converted."
  package static func double(_ value: PropertyListValue) -> Double {
    switch value {
    case .string(let string): LeadingNumber.real(string)
    default: value.doubleValue ?? 0
    }
  }

  /// "If the value is an NSNumber, NO will be returned if the value is 0, YES otherwise. If the
  /// value is an NSString, values of "YES" or "1" will return YES, and values of "NO", "0", or any
  /// other string will return NO." In fact the original converts all strings with NSString's
  /// `boolValue`, which also accepts "true" and "y". So does this function.
  package static func bool(_ value: PropertyListValue) -> Bool {
    switch value {
    case .string(let string): LeadingNumber.boolean(string)
    case .boolean(let boolean): boolean
    default: double(value) != 0
    }
  }

  /// "If the value is an NSString path, then it will construct a file URL to that path. If the
  /// value is an archived URL from -setURL:forKey: it will be unarchived." `URL` resolves "~".
  package static func url(_ value: PropertyListValue) -> URL? {
    switch value {
    case .string(let path): path.isEmpty ? nil : URL(fileURLWithPath: path)
    case .data(let archived):
      // A stored URL has no other characters; most other texts, such as JSON, have some.
      String(bytes: archived, encoding: .utf8)
        .flatMap { URL(string: $0, encodingInvalidCharacters: false) }
    case .integer, .unsigned, .boolean, .real, .date, .array, .dictionary: nil
    }
  }

  /// Returns the stored form of a URL: a file URL's path, with "~" for the user's own directory, as
  /// the original stores it; any other URL's text as UTF-8 data, where the original stores an
  /// archive of Objective-C objects.
  package static func stored(_ url: URL) -> PropertyListValue {
    url.isFileURL
      ? .string(abbreviated(url.absoluteURL.path)) : .data(Data(url.absoluteString.utf8))
  }

  private static func abbreviated(_ path: String) -> String {
    let home = URL.homeDirectory.path
    // By bytes: Unicode calls some different paths equivalent.
    guard home.utf8.count > 1, path.utf8.starts(with: home.utf8) else { return path }
    let rest = path.utf8.dropFirst(home.utf8.count)
    guard rest.isEmpty || rest.first == UInt8(ascii: "/") else { return path }
    return "~" + String(Substring(rest))
  }

  /// Returns the stored form of any object that the original's `set(_:forKey:)` takes.
  package static func stored(_ object: Any, forKey key: String) throws -> PropertyListValue {
    if let url = object as? URL { return stored(url) }
    do throws(PropertyListError) {
      return try PropertyListValue(propertyList: object)
    } catch {
      throw WormholeError.unsupported(key, error)
    }
  }
}

/// The number or truth value at the beginning of a string, as the original's getters read it.
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
    let digits = scan.digits()
    guard !digits.isEmpty else { return 0 }
    return Int((scan.isNegative ? "-" : "") + digits) ?? (scan.isNegative ? .min : .max)
  }

  static func real(_ text: String) -> Double {
    var scan = LeadingNumber(text)
    scan.readSign()
    let whole = scan.digits()
    var fraction = ""
    if scan.rest.first == "." {
      scan.rest.removeFirst()
      fraction = scan.digits()
    }
    guard !whole.isEmpty || !fraction.isEmpty else { return 0 }
    let exponent = scan.exponent()
    let plain = (scan.isNegative ? "-" : "") + "0" + whole + "." + fraction
    // `Double` reads every text of this form; one that is too large becomes infinite, one that is
    // too small becomes zero.
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

  private mutating func digits() -> String {
    let digits = rest.prefix { ("0"..."9").contains($0) }
    rest.removeFirst(digits.count)
    return String(digits)
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
    return digits.isEmpty ? "0" : sign + digits
  }
}
