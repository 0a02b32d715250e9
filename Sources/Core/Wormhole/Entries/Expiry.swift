package import FoundationEssentials
package import WormholePropertyLists
import WormholeSystem

/// The moment from which an entry is too late: while the machine runs, by a clock that cannot be
/// set; after that, by the time of day.
package struct Expiry: Sendable {
  package let date: Date
  let uptime: UInt64
  /// The boot that the uptime refers to.
  let namespace: UInt64

  /// The expiry of an entry that is never too late.
  package static var never: Expiry { Expiry(after: .seconds(longest)) }
  private static let longest: Int64 = 3_000_000_000

  package var isNever: Bool { remainingUnlessNever == nil }

  /// The time left; nil for an entry that is never too late.
  package var remainingUnlessNever: Duration? {
    let remaining = remaining
    return remaining > .seconds(Self.longest / 2) ? nil : remaining
  }

  package init(after duration: Duration) {
    let nanoseconds = max(0, duration / .nanoseconds(1))
    date = Date(timeIntervalSinceNow: nanoseconds / 1e9)
    uptime = UInt64(min(Double(bootTimeNanoseconds()) + nanoseconds, 9e18))
    namespace = ProcessIdentity.current.namespace
  }

  package init?(_ value: PropertyListValue) {
    guard let date = value["expires"]?.dateValue else { return nil }
    self.date = date
    uptime = value["uptime"]?.uint64Value ?? 0
    namespace = value["namespace"]?.uint64Value ?? 0
  }

  package func write(into value: inout PropertyListValue) {
    value["expires"] = .date(date)
    value["uptime"] = PropertyListValue(uptime)
    value["namespace"] = PropertyListValue(namespace)
  }

  /// Whether it was set by a process that has the same uptime.
  package var isOfThisMachine: Bool {
    namespace != 0 && namespace == ProcessIdentity.current.namespace
  }

  package var hasPassed: Bool { remaining == .zero }

  /// The time left; zero once it has passed.
  package var remaining: Duration {
    guard isOfThisMachine else {
      return .milliseconds(Int64(min(max(date.timeIntervalSinceNow, 0), 3e9) * 1_000))
    }
    return .nanoseconds(Int64(clamping: uptime - min(uptime, bootTimeNanoseconds())))
  }
}
