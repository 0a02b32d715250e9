import FoundationEssentials
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// The value with a peer's `LaunchState`, and beside it the output of the program started last.
struct LaunchBook: Sendable {
  private let value: PlainValue

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

  // A power loss can damage it. That must not prevent all later starts: no earlier process is then
  // left, and the count is lost.
  private static func content(_ snapshot: PlainSnapshot) throws -> PropertyListValue? {
    do {
      return try snapshot.propertyList(limits: PeerLaunch.limits)
    } catch let error as WormholeError where error.code == .damaged {
      return nil
    }
  }

  // MARK: The output

  private func name(of start: LaunchState.Start) -> String {
    NamedDirectory.startPrefix + start.nonce
  }

  /// The file that the program's process creates and prints to.
  func outputPath(of start: LaunchState.Start) -> String {
    value.directory.path + "/" + name(of: start)
  }

  /// Removes the output of earlier starts.
  func sweepOutputs(except start: LaunchState.Start) throws {
    try reporting("sweep the output of earlier starts", path: value.directory.path) {
      guard let directory = try value.directory.open([.readOnly, .directory]) else { return }
      for entry in try directory.entries()
      where entry.name.hasPrefix(NamedDirectory.startPrefix) && entry.name.text != name(of: start) {
        // A foreign directory in its place is harmless.
        _ = try tolerating([.isDirectory], removeIfPresent(entry.name.text, at: directory.rawValue))
      }
    }
  }

  /// Returns the last line of the program's output if it is short; for errors.
  func lastLine(of start: LaunchState.Start) -> String? {
    do throws(Errno) {
      let file = try FileDescriptor.open(
        outputPath(of: start), [.readOnly, .noFollow, .nonBlocking])
      let size = try file.status().size
      try file.seek(to: max(0, size - 1_024))
      let bytes = try file.readToEnd(expectedBytes: 1_024, maximumBytes: 1 << 20)
      let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
      return lines.last.map { String($0.suffix(400)) }
    } catch {
      // The output is missing, or grows faster than it is read; the error does without it.
      return nil
    }
  }
}

/// The notes on the starts of a peer: how often it was started on a day, and the last start.
struct LaunchState: Sendable, Equatable {
  struct Start: Sendable, Equatable {
    let nonce: String
    /// The time at which it began, in nanoseconds on the clock that cannot be set.
    let uptime: UInt64
    /// The process that is about to start the program; then the program's.
    var process: ProcessIdentity
    var isProgram: Bool

    /// After this time a start without a program will get none, or one that is not visible here.
    private static let patience: Duration = .seconds(10)

    /// How long ago it began; nil if that is later than now: the machine was restarted since.
    var age: Duration? {
      let age = bootTimeNanoseconds().subtractingReportingOverflow(uptime)
      return age.overflow ? nil : .nanoseconds(Int64(clamping: age.partialValue))
    }

    /// Whether the program may still become active. A stopped process must block no other.
    var isUnderWay: Bool {
      guard let age else { return false }
      let isOld = age > Self.patience
      guard process.isVisible else { return !isOld }
      return !process.hasEnded && process.status?.isStopped != true && (isProgram || !isOld)
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
  /// A new day begins when the date is later than the counted one. After a clock was set back, a
  /// new day begins only after 24 hours on the clock that cannot be set; this also limits the harm
  /// of a wrong date in the future.
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

  /// Notes the program's process, or that there is none, unless another start has followed.
  mutating func note(_ nonce: String, _ process: ProcessIdentity?) {
    guard let start, start.nonce == nonce else { return }
    self.start = process.map {
      Start(nonce: nonce, uptime: start.uptime, process: $0, isProgram: true)
    }
  }

  // MARK: As a property list

  var propertyList: PropertyListValue {
    var value: PropertyListValue = [
      "day": .date(Date(timeIntervalSince1970: Double(first.day) * 86_400)),
      "dayUptime": PropertyListValue(first.uptime), "machine": PropertyListValue(first.machine),
      "starts": PropertyListValue(starts),
    ]
    value["start"] = start.map { start in
      [
        "nonce": .string(start.nonce), "uptime": PropertyListValue(start.uptime),
        "process": Self.encode(start.process), "isProgram": .boolean(start.isProgram),
      ]
    }
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
      (1...16).contains(nonce.utf8.count), nonce.utf8.allSatisfy(Nonce.isDigit),
      let uptime = last["uptime"]?.uint64Value, let process = Self.identity(last["process"]),
      let isProgram = last["isProgram"]?.boolValue
    else { return }
    start = Start(nonce: nonce, uptime: uptime, process: process, isProgram: isProgram)
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

extension PlainValue {
  /// The value, for a reader that acts on its content, if only this user can have written it.
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
        throw WormholeError.damaged(path, error)
      }
    }
  }

  /// Verifies the container, and its directories that lead to the value's own, as far as they
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
    // The copy that is read after a power loss is checked like the value, with its directory.
    if let lease = try ifPresent(
      FileDescriptor.openBeneath(LeaseSite.lease, at: place.rawValue, [.readOnly, .directory])),
      let standIn = try KeptVersion.standIn(in: lease)
    {
      let leasePath = directory.path + "/" + LeaseSite.lease
      try Exposure.check(lease.status(), path: leasePath)
      let kept = try privateBytes(standIn, leasePath + "/" + standIn, at: lease, limits)
      if let kept { return kept }
    }
    // The first publication may just have removed it; the value is then whole.
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
