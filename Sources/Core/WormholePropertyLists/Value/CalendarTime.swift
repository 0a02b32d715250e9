/// The date and time of day of a point in time, as XML property lists and ISO 8601 spell it, in
/// UTC.
///
/// The arithmetic is our own, on the proleptic Gregorian calendar (days from civil, H. Hinnant,
/// https://howardhinnant.github.io/date_algorithms.html), because a hostile file chooses the
/// numbers and Foundation's calendar should not see them.
package struct CalendarTime: Equatable {
  let year: Int
  let month: Int
  let day: Int
  let hour: Int
  let minute: Int
  let second: Int

  private static let secondsPerDay = 86_400
  /// The days from 0000-03-01, the origin of the algorithm, to 2001-01-01.
  private static let daysToReferenceDate = 730_791
  private static let daysPerEra = 146_097

  /// Returns whether seconds since 2001 lie in the years 0000 to 9999, which four digits can spell.
  package static func isWritable(_ secondsSinceReferenceDate: Double) -> Bool {
    secondsSinceReferenceDate >= -63_145_526_400
      && secondsSinceReferenceDate < 252_423_993_600
  }

  /// The nearest of these.
  static func nearestWritable(_ secondsSinceReferenceDate: Double) -> Double {
    min(max(secondsSinceReferenceDate, -63_145_526_400), 252_423_993_599)
  }

  /// The seconds since 2001-01-01T00:00:00Z, or `nil` if no such day or time of day exists.
  package var secondsSinceReferenceDate: Int? {
    let shiftedYear = (month <= 2 ? year - 1 : year) + 400
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    let days = shiftedYear * 365 + shiftedYear / 4 - shiftedYear / 100 + shiftedYear / 400
    let sinceReference = days + dayOfYear - Self.daysPerEra - Self.daysToReferenceDate
    let seconds = sinceReference * Self.secondsPerDay + hour * 3600 + minute * 60 + second
    // A day or time that does not exist spells a different one: April 31 is May 1.
    return CalendarTime(secondsSinceReferenceDate: seconds) == self ? seconds : nil
  }

  /// Creates the date and time of whole seconds since 2001, which must be writable.
  package init(secondsSinceReferenceDate seconds: Int) {
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

  /// Reads `YYYY-MM-DDThh:mm:ss`; whether such a day and time exist is known only from
  /// `secondsSinceReferenceDate`.
  package init?(text: some Collection<UInt8>) {
    let pattern = "0000-00-00T00:00:00".utf8
    guard text.count == pattern.count else { return nil }
    var numbers: [Int] = [0]
    // Not with `zip`, because its generic type costs time at the start of a program.
    var rest = pattern.makeIterator()
    for byte in text {
      if let expected = rest.next(), expected != UInt8(ascii: "0") {
        guard byte == expected else { return nil }
        numbers.append(0)
      } else {
        guard (0x30...0x39).contains(byte) else { return nil }
        numbers[numbers.count - 1] = numbers[numbers.count - 1] * 10 + Int(byte - 0x30)
      }
    }
    (year, month, day) = (numbers[0], numbers[1], numbers[2])
    (hour, minute, second) = (numbers[3], numbers[4], numbers[5])
  }
}

extension CalendarTime: CustomStringConvertible {
  /// As in `2001-01-01T00:00:00Z`.
  package var description: String {
    let date = [year.padded(to: 4), month.padded(to: 2), day.padded(to: 2)]
    let time = [hour, minute, second].map { $0.padded(to: 2) }
    return date.joined(separator: "-") + "T" + time.joined(separator: ":") + "Z"
  }
}

extension BinaryInteger {
  /// The number with at least that many digits, padded with zeros.
  package func padded(to digits: Int, radix: Int = 10) -> String {
    let text = String(self, radix: radix)
    return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
  }
}
