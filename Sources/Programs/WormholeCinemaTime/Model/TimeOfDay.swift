/// A time of the day, by the clock on the wall.
struct TimeOfDay: Equatable, Sendable {
  let hour: Int
  let minute: Int

  var text: String { (hour < 10 ? "0" : "") + "\(hour):" + (minute < 10 ? "0" : "") + "\(minute)" }

  /// Returns when a show of an hour begins, in words.
  func wait(untilHour show: Int) -> String {
    let minutes = (show - hour) * 60 - minute
    return switch minutes {
    case 60...: "in \(minutes / 60) h" + (minutes % 60 == 0 ? "" : " \(minutes % 60) min")
    case 1..<60: "in \(minutes) min"
    case -59...0: "now"
    default: "tomorrow"
    }
  }
}

extension TimeOfDay {
  /// - Parameter text: "14:42"; anything else gives nil.
  init?(_ text: String) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy({ (1...2).contains($0.count) }),
      parts.joined().allSatisfy({ $0.isASCII && $0.isNumber }), let hour = Int(parts[0]),
      let minute = Int(parts[1]), (0..<24).contains(hour),
      (0..<60).contains(minute)
    else { return nil }
    self.init(hour: hour, minute: minute)
  }
}
