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
    guard let match = text.wholeMatch(of: /([01]?[0-9]|2[0-3]):([0-5]?[0-9])/),
      let hour = Int(match.1), let minute = Int(match.2)
    else { return nil }
    self.init(hour: hour, minute: minute)
  }
}
