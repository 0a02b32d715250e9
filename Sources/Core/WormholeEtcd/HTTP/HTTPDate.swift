import WormholePropertyLists

/// The time in a header line `Date`, such as "Sun, 06 Nov 1994 08:49:37 GMT".
enum HTTPDate {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]
  /// The seconds from 1970 to 2001.
  private static let referenceDate: Int64 = 978_307_200

  /// Returns the seconds since 1970; nil for anything but the one form that servers write.
  static func seconds(_ text: String) -> Int64? {
    let words = text.split(whereSeparator: \.isWhitespace)
    guard words.count == 6, words[5] == "GMT", let month = months.firstIndex(of: String(words[2]))
    else { return nil }
    let number = "\(month < 9 ? "0" : "")\(month + 1)"
    let time = CalendarTime(text: "\(words[3])-\(number)-\(words[1])T\(words[4])".utf8)
    return time?.secondsSinceReferenceDate.map { Int64($0) + referenceDate }
  }
}
