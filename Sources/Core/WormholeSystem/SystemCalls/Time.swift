import Glibc
import WormholeShims

/// Returns the time since this machine started, suspension included. All processes of the machine
/// share this clock, and it cannot be set. The corresponding C clock is `CLOCK_BOOTTIME`.
package func bootTimeNanoseconds() -> UInt64 {
  var time = timespec()
  // Fails only for an unknown clock (clock_gettime(2)); this one has existed since Linux 2.6.39.
  _ = clock_gettime(CLOCK_BOOTTIME, &time)
  return WallTime(time).unsignedNanoseconds
}

/// Returns the time of day. The C clock is `CLOCK_REALTIME`.
package func realTime() -> WallTime {
  var time = timespec()
  // Cannot fail for this clock (clock_gettime(2)).
  _ = clock_gettime(CLOCK_REALTIME, &time)
  return WallTime(time)
}

/// A time of day: of the clock, or of a file.
///
/// Its numbers may be any: a program may give a file any time, and a clock may be set to any time.
/// So all arithmetic with them is here, and none of it overflows.
package struct WallTime: Hashable, Comparable, Sendable {
  /// Since 1970.
  package let seconds: Int64
  package let nanoseconds: Int64

  package init(seconds: Int64, nanoseconds: Int64) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  init(_ time: timespec) {
    self.init(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
  }

  /// 64 bits hold only the years from 1677 to 2262: the caller says what becomes of the rest.
  package var nanosecondsSince1970: Int128 {
    Int128(seconds) * 1_000_000_000 + Int128(nanoseconds)
  }

  /// The same within these years, and 0 before 1970: half of all numbers, so a term can be added.
  package var unsignedNanoseconds: UInt64 {
    UInt64(max(0, Int64(clamping: nanosecondsSince1970)))
  }

  package var millisecondsSince1970: Int128 { nanosecondsSince1970 / 1_000_000 }

  /// With a fraction.
  package var secondsSince1970: Double { Double(seconds) + Double(nanoseconds) / 1e9 }

  /// Different times have different numbers, except those that are 584 years apart.
  package var mark: Int64 { Int64(truncatingIfNeeded: nanosecondsSince1970) }

  package static func < (left: WallTime, right: WallTime) -> Bool {
    left.nanosecondsSince1970 < right.nanosecondsSince1970
  }

  /// The time from one to the other; negative if the first is the earlier one.
  package static func - (later: WallTime, earlier: WallTime) -> Duration {
    .seconds(later.seconds) - .seconds(earlier.seconds)
      + (.nanoseconds(later.nanoseconds) - .nanoseconds(earlier.nanoseconds))
  }

  /// The time of day, some time ago: the clock of a file system may be late by a few milliseconds.
  package static func ago(nanoseconds past: UInt64) -> WallTime {
    let moment = realTime().nanosecondsSince1970 - Int128(past)
    let (seconds, rest) = moment.quotientAndRemainder(dividingBy: 1_000_000_000)
    return WallTime(seconds: Int64(clamping: seconds), nanoseconds: Int64(rest))
  }

  package var earlierByOneNanosecond: WallTime {
    nanoseconds > 0
      ? WallTime(seconds: seconds, nanoseconds: nanoseconds - 1)
      : WallTime(seconds: seconds &- 1, nanoseconds: 999_999_999)
  }

  /// The same time some seconds earlier.
  package func earlier(bySeconds seconds: Int64) -> WallTime {
    WallTime(seconds: self.seconds &- seconds, nanoseconds: nanoseconds)
  }
}

/// Blocks the calling thread for a moment. Only for threads that may block, never for the
/// cooperative pool. A signal may end the pause early, so callers check their condition again.
package func pauseThread(_ duration: Duration) {
  let (seconds, attoseconds) = duration.components
  var time = timespec(
    tv_sec: Int(max(seconds, 0)), tv_nsec: Int(max(attoseconds, 0) / 1_000_000_000))
  // An interrupted pause is as good as a complete one, see above.
  _ = nanosleep(&time, nil)
}

extension Duration {
  /// The whole milliseconds for `poll(2)`, rounded up so that no wait ends early; at least 0.
  package var pollMilliseconds: Int32 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    let milliseconds = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
    guard !overflow, whole < Int64(Int32.max) - 1_000 else { return Int32.max }
    return Int32(whole + milliseconds)
  }
}
