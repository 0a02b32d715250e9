package import FoundationEssentials
package import WormholePropertyLists
import WormholeSystem

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

  /// Whether it was written before this machine's last start, or on another machine.
  var isOfAnotherBoot: Bool {
    !boot.isEmpty && !ProcessIdentity.boot.isEmpty && boot != ProcessIdentity.boot
  }
}
