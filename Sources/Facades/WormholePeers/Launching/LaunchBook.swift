import FoundationEssentials
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// The value with a peer's `LaunchState`, and the places of its starts beside it.
struct LaunchBook: Sendable {
  private let value: Value

  init(_ peer: String, _ container: SharedContainer) {
    value = container.onThisMachine.own.value(PeerNames.launching(peer))
  }

  func read() throws -> LaunchState { LaunchState(try Self.content(value.snapshot())) }

  /// Changes the state in one step. `body` may run more than once, and leaves the state unchanged
  /// to write nothing.
  func change<Result: Sendable>(
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout LaunchState) -> Result
  ) throws -> Result {
    try value.edit(.init(until: deadline)) { snapshot in
      let old = LaunchState(try Self.content(snapshot))
      var new = old
      let result = body(&new)
      return (new == old ? .keep : .replace(try new.propertyList.binaryBytes()), result)
    }
  }

  func newPlace() throws -> StartPlace { try StartPlace.make(at: value) }

  func place(of start: LaunchState.Start) -> StartPlace {
    StartPlace(nonce: start.nonce, value: value)
  }

  // A loss of power can damage it, which must not prevent all later starts: then no earlier
  // process is left, and the count is lost.
  private static func content(_ snapshot: ValueSnapshot) throws -> PropertyListValue? {
    do {
      return try snapshot.propertyList(limits: PeerLaunch.limits)
    } catch let error as AppGroupError where error.code == .damaged {
      return nil
    }
  }
}

/// The notes on the starts of a peer: how often it was started on a day, and the last start.
struct LaunchState: Sendable, Equatable {
  /// One start. It is noted before the program is started, and again when its process is known.
  struct Start: Sendable, Equatable {
    /// Identifies its place; see `StartPlace`.
    var nonce: String
    var launcher: ProcessIdentity
    /// When it began, on the clock that cannot be set.
    var uptime: UInt64
    /// The program's process; nil until it is noted.
    var process: ProcessIdentity?
    /// How it ended, if the process that started it was still running then.
    var ending: String?

    /// How long ago it began; nil if that is later than now, so before the machine was restarted.
    var age: Duration? {
      let age = bootTimeNanoseconds().subtractingReportingOverflow(uptime)
      return age.overflow ? nil : .nanoseconds(Int64(clamping: age.partialValue))
    }

    /// Whether a process of this machine has been active since it began.
    func isBefore(_ member: PresenceMember?) -> Bool {
      guard let member, member.identity.isVisible else { return false }
      return member.enteredAt > uptime && member.enteredAt <= bootTimeNanoseconds()
    }
  }

  /// The time of a start: the day for people, and the clock that cannot be set.
  struct Moment: Sendable, Equatable {
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

  private var first = Moment(day: 0, uptime: 0, machine: 0)
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
    let hasPassed =
      first.machine != 0 && now.machine == first.machine && now.uptime >= first.uptime
      && now.uptime - first.uptime >= 86_400 * 1_000_000_000
    return now.day > first.day || hasPassed ? 0 : starts
  }

  // MARK: Changes

  mutating func begin(_ new: Start, at now: Moment) {
    if count(at: now) == 0 { (first, starts) = (now, 0) }
    starts += 1
    start = new
  }

  /// Changes the note on a start, unless another one has followed.
  mutating func note(_ nonce: String, _ change: (inout Start) -> Void) {
    guard var start, start.nonce == nonce else { return }
    change(&start)
    self.start = start
  }

  // MARK: As a property list

  var propertyList: PropertyListValue {
    var value: PropertyListValue = [
      "day": .date(Date(timeIntervalSince1970: Double(first.day) * 86_400)),
      "dayUptime": PropertyListValue(first.uptime), "machine": PropertyListValue(first.machine),
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
    self.starts = starts
    first = Moment(
      day: day, uptime: value["dayUptime"]?.uint64Value ?? 0,
      machine: value["machine"]?.uint64Value ?? 0)
    guard let last = value["start"], let nonce = last["nonce"]?.stringValue,
      StartPlace.isName(nonce),
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

/// A value was not read, because other users may have written it.
struct Exposure: Error, CustomStringConvertible {
  /// "PATH belongs to user 0 and has mode 664".
  let description: String

  /// - Parameter path: the file or directory through which other users may write.
  static func check(_ status: FileStatus, path: String) throws(Exposure) {
    guard status.owner != Program.effectiveUser || status.permissions & 0o022 != 0 else { return }
    let mode = String(status.permissions, radix: 8)
    throw Exposure(description: "\(path) belongs to user \(status.owner) and has mode \(mode)")
  }
}

extension Value {
  /// Returns the value for a reader that acts on its content, if only this user can have written it.
  ///
  /// The check covers the very file that is read, and every directory from the container down to
  /// it. An access control list that lets others write shows in the group's bits (acl(5)), so it is
  /// covered.
  ///
  /// - Returns: Nil if the value was never written, or was removed.
  /// - Throws: As `read`, and `Exposure`.
  func privateContent(limits: PropertyListLimits = .standard) throws -> PropertyListValue? {
    try reporting("read the value", path: path) {
      guard let place = try directory.open() else { return nil }
      try requirePrivateContainer()
      try Exposure.check(place.status(), path: directory.path)
      guard let bytes = try privateBytes(at: place, limits) else { return nil }
      do throws(PropertyListError) {
        return try PropertyListValue(bytes: bytes, limits: limits)
      } catch {
        throw AppGroupError.damaged(path, error)
      }
    }
  }

  /// Verifies the container, and the directories in it that lead to the value's own, as far as they
  /// exist.
  ///
  /// - Throws: `Exposure` if other users may write there; or `Errno`.
  func requirePrivateContainer() throws {
    let handle = try container.root.handle()
    try Exposure.check(handle.descriptor.status(), path: container.root.path)
    for path in directory.kind.chain {
      guard let status = try ifPresent(fileStatus(path, at: handle.descriptor.rawValue)) else {
        return
      }
      try Exposure.check(status, path: container.root.path + "/" + path)
    }
  }

  private func privateBytes(
    at place: borrowing FileDescriptor, _ limits: PropertyListLimits
  ) throws -> [UInt8]? {
    let bytes = try privateBytes(fileName, path, at: place, limits)
    guard let bytes, KeptVersion.isMissing(bytes) else { return bytes }
    // The copy that is read after a loss of power is checked like the value, with its directory.
    if let lease = try ifPresent(
      FileDescriptor.openBeneath(LeaseSite.lease, at: place.rawValue, [.readOnly, .directory])),
      let standIn = try KeptVersion.standIn(in: lease)
    {
      let leasePath = directory.path + "/" + LeaseSite.lease
      try Exposure.check(lease.status(), path: leasePath)
      let kept = try privateBytes(standIn, leasePath + "/" + standIn, at: lease, limits)
      if let kept { return kept }
    }
    // The first publication may just have removed it; then the value is whole.
    return try privateBytes(fileName, path, at: place, limits)
  }

  private func privateBytes(
    _ name: String, _ path: String, at place: borrowing FileDescriptor, _ limits: PropertyListLimits
  ) throws -> [UInt8]? {
    guard
      let file = try ifPresent(
        FileDescriptor.openBeneath(name, at: place.rawValue, [.readOnly, .nonBlocking]))
    else { return nil }
    let status = try file.status()
    guard status.kind == .regular else { throw Errno.invalidArgument }
    try Exposure.check(status, path: path)
    return try file.readToEnd(
      expectedBytes: Int(status.size), maximumBytes: limits.maximumBytes)
  }
}
