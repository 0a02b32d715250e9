import FoundationEssentials

/// Dates as ISO 8601 in UTC, with as many digits of the second as make the text read back as the
/// very same date.
///
/// A `Date` is a binary fraction of seconds since 2001. Its shortest decimal digits are split at
/// the point and never added to anything as a floating-point number, so nothing is rounded twice.
enum ISO8601 {
  /// 2001-01-01 after 1970-01-01.
  private static let referenceDay = 11323
  private static let secondsPerDay = 86400
  /// Beyond it lie years of five digits anyway; whole seconds still have exact decimals.
  private static let maximumSeconds = 4e11

  /// Nil outside the years 0 to 9999.
  static func text(_ date: Date) -> String? {
    let seconds = date.timeIntervalSinceReferenceDate
    guard seconds.magnitude < maximumSeconds else { return nil }
    let decimal = SplitDecimal(seconds)
    let day = floorDivide(decimal.whole, secondsPerDay)
    let (year, month, dayOfMonth) = civil(daysSince1970: day + referenceDay)
    guard (0...9999).contains(year) else { return nil }
    let second = decimal.whole - day * secondsPerDay
    let clock = [second / 3600, second / 60 % 60, second % 60].map { padded($0, 2) }
    return "\(padded(year, 4))-\(padded(month, 2))-\(padded(dayOfMonth, 2))"
      + "T\(clock.joined(separator: ":"))"
      + (decimal.fraction.isEmpty ? "Z" : ".\(decimal.fraction)Z")
  }

  /// `2001-01-01T00:00:00.25Z`, or with an offset such as `+02:00` for the `Z`.
  static func date(_ text: String) -> Date? {
    var fields = Fields(text)
    guard let year = fields.number(4), fields.take("-"), let month = fields.number(2),
      fields.take("-"), let day = fields.number(2), fields.take("T"),
      let hour = fields.number(2), fields.take(":"), let minute = fields.number(2),
      fields.take(":"), let second = fields.number(2), let fraction = fields.fraction(),
      let offset = fields.offset(), fields.isAtEnd,
      (1...12).contains(month), hour < 24, minute < 60, second < 60
    else { return nil }
    let days = daysSince1970(year, month, day)
    guard civil(daysSince1970: days) == (year, month, day) else { return nil }
    let clock = (hour * 60 + minute - offset) * 60 + second
    let whole = (days - referenceDay) * secondsPerDay + clock
    return Date(
      timeIntervalSinceReferenceDate: SplitDecimal(whole: whole, fraction: fraction).value)
  }

  /// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
  private static func civil(daysSince1970 days: Int) -> (year: Int, month: Int, day: Int) {
    let shifted = days + 719468
    let era = floorDivide(shifted, 146097)
    let dayOfEra = shifted - era * 146097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
  }

  /// The same source, days_from_civil.
  private static func daysSince1970(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let shiftedYear = month <= 2 ? year - 1 : year
    let era = floorDivide(shiftedYear, 400)
    let yearOfEra = shiftedYear - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146097 + dayOfEra - 719468
  }

  private static func floorDivide(_ a: Int, _ b: Int) -> Int {
    let (quotient, remainder) = a.quotientAndRemainder(dividingBy: b)
    return remainder < 0 ? quotient - 1 : quotient
  }

  private static func padded(_ number: Int, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}

/// The fields of a date, read from left to right.
private struct Fields {
  private var rest: Substring.UTF8View

  init(_ text: String) { rest = text[...].utf8 }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard rest.first == UInt8(ascii: character) else { return false }
    rest = rest.dropFirst()
    return true
  }

  mutating func number(_ digits: Int) -> Int? {
    let field = rest.prefix(digits)
    guard field.count == digits, field.allSatisfy(isDigit) else { return nil }
    rest = rest.dropFirst(digits)
    return Int(String(Substring(field)))
  }

  /// The digits after the point; none when there is no point, nil when there is only the point.
  mutating func fraction() -> String? {
    guard take(".") else { return "" }
    let digits = rest.prefix(while: isDigit)
    rest = rest.dropFirst(digits.count)
    return digits.isEmpty ? nil : String(Substring(digits))
  }

  /// In minutes.
  mutating func offset() -> Int? {
    if take("Z") { return 0 }
    let isEast = take("+")
    guard isEast || take("-"), let hours = number(2), take(":"), let minutes = number(2),
      hours < 24, minutes < 60
    else { return nil }
    return (isEast ? 1 : -1) * (hours * 60 + minutes)
  }

  private func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}
