import FoundationEssentials
import PropertyLists

/// The scalars that JSON lacks, as dictionaries with one key:
///
/// | property list | JSON |
/// |---|---|
/// | data | `{"$data": "<base64>"}` |
/// | date | `{"$date": "2001-01-01T00:00:00.25Z"}`; before year 0 or after 9999 `{"$date": <seconds since 2001>}` |
/// | real that is no number | `{"$real": "nan"}`, `"inf"`, `"-inf"` |
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

  /// The value that a dictionary in JSON stands for.
  ///
  /// - Throws: a reason without a position, which the reader adds.
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
    case ("$date", .integer(let seconds)):
      .date(Date(timeIntervalSinceReferenceDate: Double(seconds)))
    case ("$date", .unsigned(let seconds)):
      .date(Date(timeIntervalSinceReferenceDate: Double(seconds)))
    case ("$date", .real(let seconds)): .date(Date(timeIntervalSinceReferenceDate: seconds))
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
    switch text {
    case "nan": .nan
    case "inf": .infinity
    case "-inf": -.infinity
    default: nil
    }
  }

  static func text(_ data: Data) -> String { #"{"$data":"\#(data.base64EncodedString())"}"# }

  static func text(_ date: Date) -> String {
    let seconds = date.timeIntervalSinceReferenceDate
    if let text = ISO8601.text(date) { return #"{"$date":"\#(text)"}"# }
    return seconds.isFinite ? #"{"$date":\#(seconds)}"# : #"{"$date":"\#(name(seconds))"}"#
  }

  /// The shortest digits that read back as the same real; `1.0` and not `1`, which is an integer.
  static func text(_ real: Double) -> String {
    real.isFinite ? real.description : #"{"$real":"\#(name(real))"}"#
  }

  private static func name(_ real: Double) -> String {
    if real.isNaN { return "nan" }
    return real < 0 ? "-inf" : "inf"
  }
}
