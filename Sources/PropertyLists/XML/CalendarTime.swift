/// A point in time as the date and time of day that XML property lists spell, in UTC.
///
/// Our own arithmetic on the proleptic Gregorian calendar (days from civil, H. Hinnant,
/// https://howardhinnant.github.io/date_algorithms.html): no calendar of Foundation is asked about
/// numbers that a hostile file has chosen.
struct CalendarTime: Equatable {
  var year: Int
  var month: Int
  var day: Int
  var hour: Int
  var minute: Int
  var second: Int

  private static let secondsPerDay = 86_400
  /// From 0000-03-01, where the algorithm counts from, to 2001-01-01.
  private static let daysToReferenceDate = 730_791
  private static let daysPerEra = 146_097

  /// Whether seconds since 2001 lie in the years 0000 to 9999, which four digits can spell.
  static func isWritable(_ secondsSinceReferenceDate: Double) -> Bool {
    secondsSinceReferenceDate >= -63_145_526_400
      && secondsSinceReferenceDate < 252_423_993_600
  }

  /// The seconds since 2001-01-01T00:00:00Z; `nil` if no such day or time of day exists.
  var secondsSinceReferenceDate: Int? {
    guard (0...9999).contains(year), (1...12).contains(month), day >= 1,
      day <= Self.days(in: month, year), (0...23).contains(hour), (0...59).contains(minute),
      (0...59).contains(second)
    else { return nil }
    let shiftedYear = (month <= 2 ? year - 1 : year) + 400
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    let days = shiftedYear * 365 + shiftedYear / 4 - shiftedYear / 100 + shiftedYear / 400
    let sinceReference = days + dayOfYear - Self.daysPerEra - Self.daysToReferenceDate
    return sinceReference * Self.secondsPerDay + hour * 3600 + minute * 60 + second
  }

  /// The date and time of whole seconds since 2001; they must be writable.
  init(secondsSinceReferenceDate seconds: Int) {
    let secondOfDay = ((seconds % Self.secondsPerDay) + Self.secondsPerDay) % Self.secondsPerDay
    let days =
      (seconds - secondOfDay) / Self.secondsPerDay + Self.daysToReferenceDate + Self.daysPerEra
    let era = days / Self.daysPerEra
    let dayOfEra = days % Self.daysPerEra
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    year = yearOfEra + era * 400 - 400 + (month <= 2 ? 1 : 0)
    hour = secondOfDay / 3600
    minute = secondOfDay / 60 % 60
    second = secondOfDay % 60
  }

  init(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) {
    self.year = year
    self.month = month
    self.day = day
    self.hour = hour
    self.minute = minute
    self.second = second
  }

  private static func days(in month: Int, _ year: Int) -> Int {
    switch month {
    case 4, 6, 9, 11: 30
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    default: 31
    }
  }
}

extension CalendarTime: CustomStringConvertible {
  /// As in `2001-01-01T00:00:00Z`.
  var description: String {
    let date = [Self.padded(year, to: 4), Self.padded(month), Self.padded(day)]
    let time = [Self.padded(hour), Self.padded(minute), Self.padded(second)]
    return date.joined(separator: "-") + "T" + time.joined(separator: ":") + "Z"
  }

  private static func padded(_ number: Int, to width: Int = 2) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
