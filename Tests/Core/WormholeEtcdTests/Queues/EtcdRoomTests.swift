import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

/// Files leave room in etcd's database for everything else.
@Suite("Files in a small database of etcd", .blocking, .needsEtcd)
struct EtcdRoomTests {
  private let directory: TemporaryDirectory
  private let node: EtcdNode
  private static let quota = 16 << 20
  private static let size = 1 << 20

  init() throws {
    directory = try TemporaryDirectory()
    node = try EtcdNode(flags: ["--quota-backend-bytes=\(Self.quota)"])
    try FileDescriptor.open(directory.path + "/source", [.writeOnly, .create]).writeAll(
      (0..<Self.size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) })
  }

  private func container(patience: Duration) throws -> SharedContainer {
    try container(room: EtcdRoom(age: .milliseconds(100), patience: patience))
  }

  private func container(room: EtcdRoom) throws -> SharedContainer {
    var location = EtcdLocation(endpoints: [node.endpoint], prefix: "small")
    // The machine may be busy with other tests.
    location.lifetime = .seconds(60)
    return try SharedContainer(
      EtcdContainer.created(location, room: room),
      companion: directory.path + "/here")
  }

  private func send(_ id: String, _ queue: PlainQueue) throws {
    let sender = try queue.sender("a")
    let source = try FileDescriptor.open(directory.path + "/source", .readOnly)
    let stage = try sender.stage(id, bytes: Int64(Self.size))
    _ = try stage.copy(
      source, source.status(), durability: .standard, check: {}, copied: { _ in })
    try sender.enqueue([QueueAttachment.key: .string(id)])
  }

  @Test("go through, though together they are larger than its quota")
  func many() throws {
    let container = try container(patience: testPatience)
    let queue = container.queue("q")
    let consumer = try queue.consume()
    defer { consumer.close() }
    let count = 2 * Self.quota / Self.size
    for number in 0..<count {
      try send("f\(number)", queue)
      try container.value("x").replace(with: PropertyListValue(number))
      let entry = try #require(try consumer.next(until: soon))
      #expect(
        try entry.attachment?.open()?.readToEnd(expectedBytes: 0, maximumBytes: 2 << 20).count
          == Self.size)
      try entry.acknowledge()
    }
    let cluster = try #require(try container.report().cluster)
    #expect(cluster.alarms == [] && cluster.oldestRevision ?? 0 > 1)
  }

  /// A process knows the age only of the history since its beginning, and while nobody writes etcd does not
  /// count what a compaction has freed.
  @Test(
    "go through while nobody else writes, by one process and by a new one for each",
    arguments: [false, true])
  func alone(isNewEach: Bool) throws {
    var container = try container(room: EtcdRoom())
    let receiver = try self.container(room: EtcdRoom())
    let queue = receiver.queue("q")
    var longest = Duration.zero
    for number in 0..<24 {
      if isNewEach { container = try self.container(room: EtcdRoom()) }
      let start = ContinuousClock.now
      try send("f\(number)", container.queue("q"))
      longest = max(longest, .now - start)
      let consumer = try queue.consume()
      try #require(try consumer.next(until: soon)).acknowledge()
      consumer.close()
    }
    // Two seconds are promised; the history stays for five while no sender waits.
    #expect(longest < .seconds(4), "\(longest)")
  }

  @Test("are refused when they fill half of it, and all else goes on")
  func refused() throws {
    let container = try container(patience: .milliseconds(300))
    let queue = container.queue("q")
    var sent = 0
    let error = #expect(throws: WormholeError.self) {
      while sent < Self.quota / Self.size {
        try send("f\(sent)", queue)
        sent += 1
      }
    }
    #expect(error?.code == .noSpace && error?.reason.contains("8 MiB") == true, "\(error)")
    #expect(sent > 2 && sent < 12, "\(sent)")
    for number in 0..<20 { try container.value("x").replace(with: PropertyListValue(number)) }
    #expect(try container.value("x").read() == 19)
    // What was sent is received, and then there is room again.
    let consumer = try queue.consume()
    defer { consumer.close() }
    for _ in 0..<sent { try #require(try consumer.next(until: soon)).acknowledge() }
    var attempts = 0
    try eventually("there is room again") {
      do {
        attempts += 1
        try send("again\(attempts)", queue)
        return true
      } catch let error as WormholeError where error.code == .noSpace {
        return false
      }
    }
  }
}
