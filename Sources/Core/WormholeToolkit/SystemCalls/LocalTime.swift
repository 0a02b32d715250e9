import Glibc

/// Returns the hour, the minute and the second of a moment in the process's time zone: `TZ`, or the
/// machine's. The corresponding C function is `localtime_r`.
///
/// - Parameter seconds: Since 1970.
package func localTime(_ seconds: Int64) -> (hour: Int, minute: Int, second: Int) {
  var seconds = time_t(seconds)
  var parts = tm()
  // It fails only for a year that no `Int32` holds; then it is midnight.
  guard localtime_r(&seconds, &parts) != nil else { return (0, 0, 0) }
  return (Int(parts.tm_hour), Int(parts.tm_min), Int(parts.tm_sec))
}

/// Returns the next instant at which the local clock shows a time of day.
///
/// The corresponding C functions are `localtime_r` and `mktime`. If a day lacks the time because
/// the clock is put forward, the result is as many minutes after the change. If a day has it twice,
/// the result is the next one.
///
/// - Parameter now: In seconds since 1970, like the result.
/// - Returns: Nil if the C library knows no local time.
package func nextLocalTime(hour: Int, minute: Int, after now: Int) -> Int? {
  var (moment, parts) = (time_t(now), tm())
  guard localtime_r(&moment, &parts) != nil else { return nil }
  for _ in 0..<2 {
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (Int32(hour), Int32(minute), 0)
    let shown = [1, 0].compactMap { instant(parts, isSummer: $0) }.filter { shows($0, parts) }
    if let first = shown.filter({ $0 > now }).min() { return first }
    if shown.isEmpty, let lacking = instant(parts, isSummer: -1), lacking > now { return lacking }
    parts.tm_mday += 1
  }
  return nil
}

private func instant(_ parts: tm, isSummer: Int32) -> Int? {
  var parts = parts
  parts.tm_isdst = isSummer
  let found = mktime(&parts)
  return found == -1 ? nil : Int(found)
}

/// Whether the local clock shows that time at an instant.
private func shows(_ instant: Int, _ time: tm) -> Bool {
  var (moment, parts) = (time_t(instant), tm())
  return localtime_r(&moment, &parts) != nil && parts.tm_hour == time.tm_hour
    && parts.tm_min == time.tm_min
}
