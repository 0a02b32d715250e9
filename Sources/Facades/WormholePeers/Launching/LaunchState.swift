import FoundationEssentials
import WormholePropertyLists
import WormholeSystem

/// The notes on the starts of a peer: how often it was started on a day, and the last start.
struct LaunchState: Sendable, Equatable {
  /// One start. It is noted before the program is started, and again when its process is known.
  struct Start: Sendable, Equatable {
    /// Identifies its place; see `StartPlace`.
    var nonce: String
    /// The process that starts the program.
    var launcher: ProcessIdentity
    /// When it began, on the clock that cannot be set.
    var uptime: UInt64
    /// The program's process; nil until it is noted.
    var process: ProcessIdentity?
    /// How it ended, if the process that started it was still running then.
    var ending: String?
  }

  /// The time of a start: the day for people, and the clock that cannot be set.
  struct Moment: Sendable {
    /// Days since 1970, UTC.
    var day: Int64
    var uptime: UInt64
    /// The start of a machine to which the uptime belongs; 0 for unknown.
    var machine: UInt64

    static func now() -> Moment {
      Moment(
        day: realTime().seconds / 86_400, uptime: bootTimeNanoseconds(),
        machine: ProcessIdentity.current.namespace)
    }
  }

  /// The day that is counted, and the time of its first start.
  private var day: Int64 = 0
  private var began: UInt64 = 0
  private var machine: UInt64 = 0
  private var starts = 0
  private(set) var start: Start?

  init() {}

  // MARK: The budget

  /// How often the program was started on the day of a moment.
  ///
  /// A new day begins when the date is later than the counted one. A clock that was set back begins
  /// a new day only after 24 hours on the clock that cannot be set; this also limits the harm of a
  /// wrong date in the future.
  func count(at now: Moment) -> Int {
    now.day > day || hasPassed(now) ? 0 : starts
  }

  private func hasPassed(_ now: Moment) -> Bool {
    machine != 0 && now.machine == machine && now.uptime >= began
      && now.uptime - began >= 86_400 * 1_000_000_000
  }

  // MARK: Changes

  mutating func begin(_ new: Start, at now: Moment) {
    if count(at: now) == 0 {
      (day, began, machine, starts) = (now.day, now.uptime, now.machine, 0)
    }
    starts += 1
    start = new
  }

  /// - Returns: false when another start has followed.
  mutating func note(_ nonce: String, _ change: (inout Start) -> Void) -> Bool {
    guard var start, start.nonce == nonce else { return false }
    change(&start)
    self.start = start
    return true
  }

  // MARK: As a property list

  var propertyList: PropertyListValue {
    var value: PropertyListValue = [
      "day": .date(Date(timeIntervalSince1970: Double(day) * 86_400)),
      "dayUptime": PropertyListValue(began), "machine": PropertyListValue(machine),
      "starts": PropertyListValue(starts),
    ]
    guard let start else { return value }
    var last: PropertyListValue = [
      "nonce": .string(start.nonce), "launcher": Self.encode(start.launcher),
      "uptime": PropertyListValue(start.uptime),
    ]
    last["process"] = start.process.map { Self.encode($0) }
    last["ending"] = start.ending.map { .string($0) }
    value["start"] = last
    return value
  }

  /// A start that cannot be read counts as none.
  init(_ value: PropertyListValue?) {
    guard let value, let date = value["day"]?.dateValue,
      let day = Int64(exactly: (date.timeIntervalSince1970 / 86_400).rounded(.down)),
      let starts = value["starts"]?.intValue, (0...1_000_000_000).contains(starts)
    else { return }
    self.day = day
    self.starts = starts
    began = value["dayUptime"]?.uint64Value ?? 0
    machine = value["machine"]?.uint64Value ?? 0
    guard let last = value["start"], let nonce = last["nonce"]?.stringValue,
      let launcher = Self.identity(last["launcher"]), let uptime = last["uptime"]?.uint64Value
    else { return }
    start = Start(
      nonce: nonce, launcher: launcher, uptime: uptime, process: Self.identity(last["process"]),
      ending: last["ending"]?.stringValue)
  }

  private static func encode(_ identity: ProcessIdentity) -> PropertyListValue {
    [
      "pid": .integer(Int64(identity.processID)),
      "started": PropertyListValue(identity.startTicks),
      "namespace": PropertyListValue(identity.namespace),
    ]
  }

  private static func identity(_ value: PropertyListValue?) -> ProcessIdentity? {
    guard let value, let process = value["pid"]?.int64Value.flatMap({ Int32(exactly: $0) }),
      process > 0, let started = value["started"]?.uint64Value,
      let namespace = value["namespace"]?.uint64Value
    else { return nil }
    return ProcessIdentity(processID: process, startTicks: started, namespace: namespace)
  }
}
