import FoundationEssentials
import WormholePropertyLists

/// The scalars that JSON lacks, as dictionaries with one key:
///
/// | property list | JSON |
/// |---|---|
/// | data | `{"$data": "<base64>"}` |
/// | date | `{"$date": "2001-01-01T00:00:00.25Z"}`; before year 0 or after 9999 `{"$date": <seconds since 2001>}` |
/// | NaN and the infinities | `{"$real": "nan"}`, `"inf"`, `"-inf"` |
/// | dictionary whose only key is `$data`, `$date` or `$real` | the key gets one more `$`: `{"$$data": …}` |
///
/// So that nothing is ambiguous, a lone key of two or more `$` before one of these words loses one `$`
/// when it is read and gains one when it is written. All other dictionaries are read and written as they
/// are: a lone `{"$ref": …}` needs no escape.
enum TaggedScalar {
  private static let words: Set<String> = ["data", "date", "real"]

  /// The key under which an ordinary dictionary with this only key is written.
  static func escaped(_ key: String) -> String { isReserved(key) ? "$" + key : key }

  private static func isReserved(_ key: String) -> Bool {
    key.hasPrefix("$") && words.contains(String(key.drop { $0 == "$" }))
  }

  /// The value that a dictionary in JSON stands for; throws a reason without a position, which the
  /// reader adds.
  static func value(of members: [String: PropertyListValue]) throws(JSONError) -> PropertyListValue
  {
    guard members.count == 1, let (key, content) = members.first, isReserved(key) else {
      return .dictionary(members)
    }
    if key.hasPrefix("$$") { return .dictionary([String(key.dropFirst()): content]) }
    if let scalar = scalar(key, content) { return scalar }
    throw JSONError(
      reason: "\(expectation(key)); a dictionary whose key really is \(key) is written "
        + "{\"$\(key)\": …}")
  }

  private static func scalar(_ key: String, _ content: PropertyListValue) -> PropertyListValue? {
    switch (key, content) {
    case ("$data", .string(let text)): Data(base64Encoded: text).map { .data($0) }
    case ("$date", .string(let text)): date(text).map { .date($0) }
    case ("$date", .integer), ("$date", .unsigned), ("$date", .real):
      content.doubleValue.map { .date(Date(timeIntervalSinceReferenceDate: $0)) }
    case ("$real", .string(let text)): notANumber(text).map { .real($0) }
    default: nil
    }
  }

  private static func expectation(_ key: String) -> String {
    switch key {
    case "$data": "$data needs a string in base64"
    case "$date": "$date needs a date such as \"2001-01-01T00:00:00.25Z\""
    default: "$real needs \"nan\", \"inf\" or \"-inf\""
    }
  }

  private static func date(_ text: String) -> Date? {
    if let seconds = notANumber(text) { return Date(timeIntervalSinceReferenceDate: seconds) }
    return ISO8601.date(text)
  }

  private static func notANumber(_ text: String) -> Double? {
    ["nan", "inf", "-inf"].contains(text) ? Double(text) : nil
  }

  static func text(_ data: Data) -> String { #"{"$data":"\#(data.base64EncodedString())"}"# }

  static func text(_ date: Date) -> String {
    let seconds = date.timeIntervalSinceReferenceDate
    if let text = ISO8601.text(date) { return #"{"$date":"\#(text)"}"# }
    return seconds.isFinite ? #"{"$date":\#(seconds)}"# : #"{"$date":"\#(name(seconds))"}"#
  }

  /// The shortest digits that read back as the same real; `1.0`, not `1`, which is an integer.
  static func text(_ real: Double) -> String {
    real.isFinite ? real.description : #"{"$real":"\#(name(real))"}"#
  }

  private static func name(_ real: Double) -> String { real.isNaN ? "nan" : real.description }
}

/// Dates as ISO 8601 in UTC, with exactly the digits of the second that make the text read back as
/// the same date.
///
/// A `Date` is a binary fraction of seconds since 2001. Its shortest decimal digits are split at
/// the point and never added to anything as a floating-point number, so nothing is rounded twice.
enum ISO8601 {
  /// Nil outside the years 0 to 9999.
  static func text(_ date: Date) -> String? {
    let seconds = date.timeIntervalSinceReferenceDate
    guard CalendarTime.isWritable(seconds) else { return nil }
    let decimal = SplitDecimal(seconds)
    let time = CalendarTime(secondsSinceReferenceDate: decimal.whole).description
    return decimal.fraction.isEmpty ? time : "\(time.dropLast()).\(decimal.fraction)Z"
  }

  /// `2001-01-01T00:00:00.25Z`, or with an offset such as `+02:00` for the `Z`.
  static func date(_ text: String) -> Date? {
    let (time, rest) = (text.utf8.prefix(19), text.utf8.dropFirst(19))
    let fraction = rest.first == UInt8(ascii: ".") ? rest.dropFirst().prefix(while: \.isDigit) : nil
    let zone = fraction.map { rest.dropFirst(1 + $0.count) } ?? rest
    guard fraction?.isEmpty != true,
      let whole = CalendarTime(text: time)?.secondsSinceReferenceDate,
      let offset = offset(String(Substring(zone)))
    else { return nil }
    let decimal = SplitDecimal(
      whole: whole - offset * 60, fraction: fraction.map { String(Substring($0)) } ?? "")
    return Date(timeIntervalSinceReferenceDate: decimal.value)
  }

  /// In minutes: `Z`, or a sign, hours and minutes.
  private static func offset(_ zone: String) -> Int? {
    if zone == "Z" { return 0 }
    let fields = zone.dropFirst().split(separator: ":", omittingEmptySubsequences: false)
    guard let sign = zone.first, "+-".contains(sign), fields.count == 2,
      fields.allSatisfy({ $0.utf8.count == 2 && $0.utf8.allSatisfy(\.isDigit) }),
      let hours = Int(fields[0]), let minutes = Int(fields[1]), hours < 24, minutes < 60
    else { return nil }
    return (sign == "+" ? 1 : -1) * (hours * 60 + minutes)
  }
}

/// A real as a whole number, rounded down, and the decimal digits to be added to it: -0.25 is -1 and
/// "75".
private struct SplitDecimal {
  let whole: Int
  /// Without trailing zeros.
  let fraction: String

  init(whole: Int, fraction: String) {
    self.whole = whole
    self.fraction = Self.trimmed(fraction)
  }

  /// The shortest digits that read back as `real`, whose magnitude is below 2^53.
  init(_ real: Double) {
    precondition(real.magnitude < 0x1p53, "larger reals are printed with an exponent")
    let (whole, fraction) = Self.digits(of: real.magnitude)
    switch (real < 0, fraction.isEmpty) {
    case (false, _): self.init(whole: whole, fraction: fraction)
    case (true, true): self.init(whole: -whole, fraction: "")
    case (true, false): self.init(whole: -whole - 1, fraction: Self.complement(fraction))
    }
  }

  /// The nearest real.
  var value: Double {
    let text =
      whole >= 0 || fraction.isEmpty
      ? "\(whole).\(fraction.isEmpty ? "0" : fraction)"
      : "-\(-whole - 1).\(Self.complement(fraction))"
    guard let value = Double(text) else { preconditionFailure("'\(text)' is not a decimal number") }
    return value
  }

  /// Splits "12.5", "5.0" and, for small numbers, "1.25e-07".
  private static func digits(of magnitude: Double) -> (whole: Int, fraction: String) {
    let parts = magnitude.description.split(separator: "e")
    let mantissa = parts[0].split(separator: ".")
    let whole = String(mantissa[0])
    let fraction = mantissa.count > 1 ? trimmed(String(mantissa[1])) : ""
    guard parts.count > 1, let exponent = Int(parts[1]), exponent < 0 else {
      return (Int(whole) ?? 0, fraction)
    }
    // With an exponent the mantissa has one digit before the point.
    return (0, String(repeating: "0", count: -exponent - 1) + whole + fraction)
  }

  /// The digits of 1 - 0.`fraction`; `fraction` does not end with 0.
  private static func complement(_ fraction: String) -> String {
    let nines = fraction.utf8.map { UInt8(ascii: "9") - ($0 - UInt8(ascii: "0")) }
    let last = nines.indices.last.map { nines[$0] + 1 }
    return String(decoding: nines.dropLast() + (last.map { [$0] } ?? []), as: UTF8.self)
  }

  private static func trimmed(_ digits: String) -> String {
    let kept = digits.utf8.reversed().drop { $0 == UInt8(ascii: "0") }.reversed()
    return String(decoding: Array(kept), as: UTF8.self)
  }
}
