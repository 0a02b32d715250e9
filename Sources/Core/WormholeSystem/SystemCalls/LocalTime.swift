import Glibc

/// Returns the next instant at which the local clock shows a time of the day.
///
/// The corresponding C functions are `localtime_r` and `mktime`. A time that a day lacks, because the clock
/// is put forward, is the one that many minutes after the change.
///
/// - Parameter now: In seconds since 1970, as the result.
/// - Returns: Nil if the C library knows no local time.
package func nextLocalTime(hour: Int, minute: Int, after now: Int) -> Int? {
  var (moment, parts) = (time_t(now), tm())
  guard localtime_r(&moment, &parts) != nil else { return nil }
  for _ in 0..<2 {
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (Int32(hour), Int32(minute), 0)
    parts.tm_isdst = -1
    let found = mktime(&parts)
    if found > now { return Int(found) }
    parts.tm_mday += 1
  }
  return nil
}
