public import FoundationEssentials
public import WormholePropertyLists
package import WormholeSystem

/// A process that is present under a name, or the last one that was present.
///
/// ```swift
/// for member in try container.presence("tills").members() {
///   print(member.program, member.processID, member.state, member.content ?? [:])
/// }
/// ```
public struct PresenceMember: Sendable, Hashable, Encodable {
  /// The state of the process, as far as /proc shows it.
  ///
  /// ```swift
  /// let running = try container.presence("tills").members().filter { $0.state == .running }
  /// print(running.count)
  /// ```
  public enum State: String, Sendable, Hashable, Encodable {
    /// It runs, or can run at any time.
    case running
    /// Stopped by a signal or a debugger.
    case suspended
    /// No longer present.
    case gone
    /// Present, because its lock is held, but invisible: in another namespace, on another machine,
    /// or its lock was left to a forked child. On etcd this is the state of every process on
    /// another machine: etcd heard from it at most the lifetime of a session ago.
    case unknown
  }

  /// Unique among all registrations, and constant as long as the registration lasts.
  public let id: String
  /// Its process number, in its own namespace.
  public let processID: Int32
  /// The name of its program, at most 15 bytes.
  public let program: String
  /// The name of its machine in a container on etcd; nil in a directory, whose processes are all on
  /// this machine.
  public let host: String?
  /// Its state at the time of the look.
  public let state: State
  /// The time of entering, by the clock of its machine.
  public let since: Date
  /// Whether it has, or waits for, the exclusive role.
  public let isExclusive: Bool
  /// The content that it entered with.
  public let content: PropertyListValue?

  /// Whether it has not quite entered: a short step, which has a term.
  var isEntering = false
  package let identity: ProcessIdentity
  /// The time of entering, in nanoseconds on the clock that cannot be set (`bootTimeNanoseconds`).
  package let enteredAt: UInt64

  private enum CodingKeys: String, CodingKey {
    case id, program, host, state, since, isExclusive, content
    case processID = "process"
  }

  package init(_ record: PresenceRecord, state: State) {
    id = record.id
    processID = record.identity.processID
    program = record.program
    host = record.host
    self.state = state
    since = record.since
    isExclusive = record.isExclusive
    content = record.content
    identity = record.identity
    enteredAt = record.enteredAt
  }

  /// Reads the record under a key of etcd; nil if it is not a registration with this id.
  package init?(key value: [UInt8], id: String) {
    guard let record = PresenceRecord(value, id: id) else { return nil }
    self.init(record, state: .unknown)
  }

  /// Whether it is stopped now; nil if it has ended, or is invisible. Reads one file of /proc, and
  /// does not check whether the process is still present.
  package var isStopped: Bool? {
    guard state != .unknown, let status = ProcessStatus.of(processID),
      status.startTicks == identity.startTicks, !status.isDead
    else { return nil }
    return status.isStopped
  }

  /// Whether it is a registration of this very process.
  public var isOwnProcess: Bool { identity == .current }

  /// The member as the process in the way, for errors.
  package var holder: LeaseHolder {
    let states: [State: LeaseHolder.State] = [
      .running: .running, .suspended: .stopped, .gone: .gone,
    ]
    let age = Date().timeIntervalSince(since)
    return LeaseHolder(
      processID: processID, program: program, host: host, state: states[state] ?? .unknown,
      held: age >= 0 && age < 3e9 ? .milliseconds(Int64(age * 1_000)) : nil)
  }
}

extension PresenceMember: CustomStringConvertible {
  /// "process 4711 (swift-daemon), suspended".
  /// With a host: "process 4711 (swift-daemon) on h2, unknown".
  public var description: String { "\(process), \(state.rawValue)" }

  /// "process 4711 (swift-daemon) on h2".
  package var process: String {
    "process \(processID) (\(program))\(host.map { " on \($0)" } ?? "")"
  }
}

/// The state of a presence, in one word.
///
/// ```swift
/// switch try container.presence("tills").status() {
/// case .running(let member): print("open since \(member.since)")
/// case .suspended(let member): print("process \(member.processID) is stopped")
/// case .gone(_, let ended): print("closed", ended ?? "at some time")
/// case .neverSeen, .unknown: print("nobody knows")
/// }
/// ```
public enum PresenceStatus: Sendable, Hashable {
  /// A process is present and runs; the oldest of several.
  case running(PresenceMember)
  /// Every present process is stopped.
  case suspended(PresenceMember)
  /// A process is present, but its state is invisible.
  case unknown(PresenceMember)
  /// No process is present any longer; the last one, if its record can be read, and the time at
  /// which it left; nil if it was killed.
  case gone(last: PresenceMember?, ended: Date?)
  /// No process was ever present.
  case neverSeen
}

/// The content of a registration's file: the process, the time of entering, and a small value of
/// the program.
package struct PresenceRecord: Sendable {
  package let id: String
  package let identity: ProcessIdentity
  /// The machine's boot id; empty if /proc does not show it.
  let boot: String
  let program: String
  let since: Date
  /// Nanoseconds since the machine started.
  let enteredAt: UInt64
  package let isExclusive: Bool
  let content: PropertyListValue?
  /// The inode of the directory that it was created for; a copy, even one of hard links, has
  /// another one.
  var directory: UInt64 = 0
  /// The time at which it left.
  package var ended: Date?
  /// The name of its machine; nil in a directory.
  let host: String?

  /// The limits of a record for a reader: its bytes on disk, and its expanded size.
  static let limits = PropertyListLimits(
    maximumBytes: 65_536, maximumNodes: 16_384, maximumExpandedBytes: 1 << 20)

  /// Creates the record of this process, which enters now.
  init(isExclusive: Bool, content: PropertyListValue?, host: String? = nil) {
    identity = .current
    // With the process number, because a forked child would continue its parent's nonces.
    id = String(identity.processID, radix: 16) + "-" + Nonce.next()
    boot = ProcessIdentity.boot
    program = ProcessStatus.of(identity.processID)?.program ?? ""
    since = Date()
    enteredAt = bootTimeNanoseconds()
    self.isExclusive = isExclusive
    self.content = content
    self.host = host
  }

  /// Reads a record; nil if it is not one, or has another id than expected.
  ///
  /// - Parameter id: The expected id; nil for any.
  package init?(_ bytes: [UInt8], id expected: String?) {
    // A foreign file does not make a process present.
    guard let value = try? PropertyListValue(bytes: bytes, limits: Self.limits),
      let id = value["id"]?.stringValue, expected == nil || expected == id,
      let process = value["pid"]?.int64Value.flatMap({ Int32(exactly: $0) }), process > 0,
      let started = value["started"]?.uint64Value,
      let namespace = value["namespace"]?.uint64Value, let since = value["since"]?.dateValue,
      let enteredAt = value["uptime"]?.uint64Value,
      let directory = value["directory"]?.uint64Value
    else { return nil }
    self.id = id
    identity = ProcessIdentity(processID: process, startTicks: started, namespace: namespace)
    boot = value["boot"]?.stringValue ?? ""
    program = value["program"]?.stringValue ?? ""
    self.since = since
    self.enteredAt = enteredAt
    isExclusive = value["exclusive"]?.boolValue ?? false
    content = value["content"]
    self.directory = directory
    ended = value["ended"]?.dateValue
    host = value["host"]?.stringValue
  }

  package func bytes() throws(PropertyListError) -> [UInt8] {
    var value: PropertyListValue = [
      "id": .string(id), "pid": .integer(Int64(identity.processID)),
      "started": PropertyListValue(identity.startTicks),
      "namespace": PropertyListValue(identity.namespace), "boot": .string(boot),
      "program": .string(program), "since": .date(since),
      "uptime": PropertyListValue(enteredAt), "directory": PropertyListValue(directory),
      "exclusive": .boolean(isExclusive),
    ]
    value["content"] = content
    value["ended"] = ended.map { .date($0) }
    value["host"] = host.map { .string($0) }
    return try value.binaryBytes(limits: Self.limits)
  }
}
