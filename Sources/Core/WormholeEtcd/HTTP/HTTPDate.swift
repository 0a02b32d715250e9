/// The time in a header line `Date`, such as "Sun, 06 Nov 1994 08:49:37 GMT".
package enum HTTPDate {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// Returns the seconds since 1970; nil for anything but the one form that servers write.
  package static func seconds(_ text: String) -> Int64? {
    let words = text.split(whereSeparator: \.isWhitespace)
    guard words.count == 6, words[5] == "GMT", let day = Int64(words[1]), (1...31).contains(day),
      let month = months.firstIndex(of: String(words[2])), let year = Int64(words[3]),
      (1970...9999).contains(year)
    else { return nil }
    let clock = words[4].split(separator: ":").map { Int64($0) ?? -1 }
    guard clock.count == 3, (0..<24).contains(clock[0]), (0..<60).contains(clock[1]),
      (0...60).contains(clock[2])
    else { return nil }
    return days(year: year, month: Int64(month) + 1, day: day) * 86_400 + clock[0] * 3_600 + clock[
      1] * 60 + clock[2]
  }

  /// The days from 1 January 1970, with years that begin in March, so that the day of a leap year comes
  /// last.
  private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    let year = month > 2 ? year : year - 1
    let month = month > 2 ? month - 3 : month + 9
    return year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 719_469
  }
}
