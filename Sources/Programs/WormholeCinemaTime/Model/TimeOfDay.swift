import Foundation

/// A time of day, by the wall clock.
struct TimeOfDay: Equatable, Sendable {
  let hour: Int
  let minute: Int

  static var now: TimeOfDay {
    let now = Calendar.current.dateComponents([.hour, .minute], from: Date())
    return TimeOfDay(hour: now.hour ?? 0, minute: now.minute ?? 0)
  }

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
