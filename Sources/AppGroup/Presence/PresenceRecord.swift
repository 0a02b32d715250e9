import FoundationEssentials
import PropertyLists
import SystemCalls

/// What a registration's file says: who, since when, and the little that the program adds.
struct PresenceRecord: Sendable {
  let id: String
  let identity: ProcessIdentity
  /// The machine's boot id; empty where /proc does not tell.
  let boot: String
  let program: String
  let since: Date
  /// Nanoseconds since the machine started.
  let enteredAt: UInt64
  let isExclusive: Bool
  let content: PropertyListValue?
  /// The inode of the directory that it was made for: a copy, even one of hard links, is not it.
  var directory: UInt64 = 0
  /// When it left by itself.
  var ended: Date?

  /// What a record may cost whoever looks: its bytes on disk, and what they stand for.
  static let limits = PropertyListLimits(
    maximumBytes: 65_536, maximumNodes: 16_384, maximumExpandedBytes: 1 << 20)

  /// This process enters now.
  init(isExclusive: Bool, content: PropertyListValue?) {
    identity = .current
    // The process number as well: a forked child would count on from its parent's nonces.
    id = String(identity.processID, radix: 16) + "-" + Nonce.next()
    boot = ProcessIdentity.boot
    program = ProcessStatus.of(identity.processID)?.program ?? ""
    since = Date()
    enteredAt = bootTimeNanoseconds()
    self.isExclusive = isExclusive
    self.content = content
  }

  /// Reads what lies there; nil for what is no record, or another's than it should be.
  ///
  /// - Parameter id: whose it should be; nil for anybody's.
  init?(_ bytes: [UInt8], id expected: String?) {
    let value: PropertyListValue
    do throws(PropertyListError) {
      value = try PropertyListValue(bytes: bytes, limits: Self.limits)
    } catch {
      // Somebody else's file: nobody is present by it.
      return nil
    }
    guard let id = value["id"]?.stringValue, expected == nil || expected == id,
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
  }

  func bytes() throws(PropertyListError) -> [UInt8] {
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
    let bytes = try value.binaryBytes()
    try PropertyListGuard.check(bytes, limits: Self.limits)
    return bytes
  }

  /// Whether it was written before this machine's last start, or on another machine.
  var isOfAnotherBoot: Bool {
    !boot.isEmpty && !ProcessIdentity.boot.isEmpty && boot != ProcessIdentity.boot
  }
}
