import FoundationEssentials
import WormholeToolkit

/// The form of an argument, checked while the command line is parsed.
enum ValueKind: Sendable, Equatable {
  /// Any text, even an empty one.
  case text
  /// Any text but the empty one.
  case identifier
  /// Any text but the empty one; completion offers the names that exist.
  case live(LiveNames)
  /// A whole number of one or more.
  case count
  /// A time of zero or more: a number of seconds, or a number with its unit.
  case duration
  /// A time of day, or an instant.
  case time
  /// A whole number that fits into 64 bits.
  case unsigned
  case choice([String])
  /// Some of these, separated by commas.
  case choices([String])
  /// `NAME=value`.
  case assignment
  case directory
  case file

  /// About thirty years; a larger number is a typo, and would overflow a `Duration`.
  static let maximumSeconds = 1e9

  /// The word for a value in the help, unless the option has a better one.
  var name: String {
    switch self {
    case .duration: "duration"
    case .time: "time"
    case .count, .unsigned: "n"
    case .directory: "directory"
    case .file: "file"
    default: "value"
    }
  }

  /// Why `text` does not fit; nil if it does.
  func problem(with text: String) -> String? {
    switch self {
    case .text: nil
    case .live(.key): nil
    case .identifier, .live, .directory, .file: text.isEmpty ? "it must not be empty" : nil
    case .count: Self.count(text) == nil ? "expected a whole number of 1 or more" : nil
    case .duration:
      Self.duration(text) == nil
        ? "expected a number of seconds from 0 to 1000000000, or a time such as 250ms, 5m or 2h"
        : nil
    case .time:
      switch Self.time(text)?.timeIntervalSinceNow {
      case nil:
        "expected a time of the day such as 07:00, or an instant such as 2026-12-31T07:00:00Z"
      case let delay?:
        delay > Self.maximumSeconds ? "it is more than 1000000000 seconds ahead" : nil
      }
    case .unsigned:
      Self.unsigned(text) == nil ? "expected a whole number from 0 to \(UInt64.max)" : nil
    case .choice(let values): Self.problem(with: text, among: values)
    case .choices(let values):
      Self.list(text).compactMap { Self.problem(with: $0, among: values) }.first
    case .assignment: text.hasPrefix("=") || !text.contains("=") ? "expected NAME=value" : nil
    }
  }

  private static func problem(with text: String, among values: [String]) -> String? {
    guard !values.contains(text) else { return nil }
    return "\(Suggestion.sentence(for: text, among: values))please provide one of "
      + values.map { "'\($0)'" }.joined(separator: ", ")
  }

  static func list(_ text: String) -> [String] {
    text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
  }

  var choices: [String] {
    switch self {
    case .choice(let values), .choices(let values): values
    default: []
    }
  }

  static func count(_ text: String) -> Int? {
    guard text.utf8.allSatisfy(\.isDigit), let count = Int(text), count >= 1 else { return nil }
    return count
  }

  static func unsigned(_ text: String) -> UInt64? {
    text.utf8.allSatisfy(\.isDigit) ? UInt64(text) : nil
  }

  /// The units of a duration, in seconds; a number without a unit counts seconds.
  private static let units = ["": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400]

  /// `90`, `1.5`, `250ms`, `90s`, `5m`, `2h`, `7d`. `Double` alone would also take "inf", "nan" and
  /// hexadecimal.
  static func duration(_ text: String) -> Duration? {
    let number = text.prefix { $0.isASCII && $0.isNumber || $0 == "." }
    guard let amount = Double(number), let unit = units[String(text.dropFirst(number.count))],
      amount * unit <= maximumSeconds
    else { return nil }
    return .seconds(amount * unit)
  }

  /// `07:00`, the next time that the local clock shows it, or an instant as ISO 8601.
  static func time(_ text: String) -> Date? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return ISO8601.date(text) }
    guard parts.allSatisfy({ (1...2).contains($0.utf8.count) && $0.utf8.allSatisfy(\.isDigit) }),
      let hour = Int(parts[0]), let minute = Int(parts[1]), hour < 24, minute < 60
    else { return nil }
    return nextLocalTime(
      hour: hour, minute: minute, after: Int(Date.now.timeIntervalSince1970)
    ).map { Date(timeIntervalSince1970: Double($0)) }
  }

  /// Whether an argument that begins with a dash is a number, so not an option.
  static func isNegativeNumber(_ text: String) -> Bool {
    let rest = text.utf8.dropFirst()
    guard text.utf8.first == UInt8(ascii: "-"), let first = rest.first else { return false }
    return (first.isDigit || first == UInt8(ascii: ".")) && Double(text) != nil
  }
}

extension UInt8 {
  var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
}
