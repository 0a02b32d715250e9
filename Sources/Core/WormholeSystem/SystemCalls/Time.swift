import Glibc
import WormholeShims

/// Returns the time since this machine started, suspension included. All processes of the machine
/// share this clock, and it cannot be set. The corresponding C clock is `CLOCK_BOOTTIME`.
package func bootTimeNanoseconds() -> UInt64 {
  var time = timespec()
  // Fails only for an unknown clock (clock_gettime(2)); this one has existed since Linux 2.6.39.
  _ = clock_gettime(CLOCK_BOOTTIME, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Returns the time of day, in seconds and nanoseconds since 1970. The C clock is `CLOCK_REALTIME`.
package func realTime() -> (seconds: Int64, nanoseconds: Int64) {
  var time = timespec()
  // Cannot fail for this clock (clock_gettime(2)).
  _ = clock_gettime(CLOCK_REALTIME, &time)
  return (Int64(time.tv_sec), Int64(time.tv_nsec))
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
  /// The whole milliseconds for `poll(2)`, rounded up so that a wait does not end early; at least
  /// 0.
  package var pollMilliseconds: Int32 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    let milliseconds = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
    guard !overflow, whole < Int64(Int32.max) - 1_000 else { return Int32.max }
    return Int32(whole + milliseconds)
  }
}
