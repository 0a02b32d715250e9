import FoundationEssentials
import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole
@testable import WormholeEtcd

/// What stays on etcd is bounded by what lives, not by what has been done.
@Suite("A container on etcd", .blocking, .needsEtcd)
struct EtcdGrowthTests {
  private let directory: TemporaryDirectory
  private let node: EtcdNode
  private let container: SharedContainer
  private let etcd: EtcdContainer

  init() throws {
    // On a member of its own, because leases are counted.
    (directory, node) = (try TemporaryDirectory(), try EtcdNode())
    container = try SharedContainer(
      etcd: EtcdLocation(endpoints: [node.endpoint], prefix: "year"), companion: directory.path)
    etcd = try #require(container.engine as? EtcdContainer)
  }

  private func leases() throws -> Int {
    try node.ask("lease/leases", "{}").split(separator: "\"ID\":").count - 1
  }

  private func keys() throws -> Int { try etcd.client.count(etcd.keys, until: soon) }

  @Test("keeps after a year what it kept after two days")
  func year() throws {
    let received = Received()
    let mailbox = try EtcdMailbox("a", etcd, laneAge: .zero) { _ in
      received.count.withLock { $0 += 1 }
    }
    let admission = Admission(entries: 100, bytes: 100_000)
    defer { mailbox.end(asDeath: false) }
    var early: (keys: Int, leases: Int)?
    for day in 1...365 {
      try container.value("x").replace(
        with: PropertyListValue(day), expiresAfter: .seconds(86_400))
      // Each command is a sender of its own.
      let writer = etcd.mailboxWriter(to: "a", admission)
      #expect(try writer.post(PropertyListValue(day).binaryBytes(), until: soon) == .posted)
      if day % 20 == 1 { try send(day: UInt64(day)) }
      if day == 2 {
        try eventually("requests are delivered") { received.count.withLock { $0 } == day }
        early = (try keys(), try leases())
      }
    }
    try eventually("all requests are delivered") { received.count.withLock { $0 } == 365 }
    let first = try #require(early)
    #expect(first.leases < 15 && first.keys < 40, "\(first)")
    try eventually("the leases of former publications have ended") {
      try leases() <= 2 * first.leases
    }
    try eventually("the lanes of former senders are gone") {
      let writer = etcd.mailboxWriter(to: "a", admission)
      _ = try writer.post(PropertyListValue(366).binaryBytes(), until: soon)
      return try keys() <= 2 * first.keys
    }
  }

  @Test(
    "delivers what a sender posts after its lane was swept, and no late copy of what it posted before"
  )
  func sweptLane() throws {
    let received = Received()
    let mailbox = try EtcdMailbox("a", etcd, laneAge: .zero) { _ in
      received.count.withLock { $0 += 1 }
    }
    defer { mailbox.end(asDeath: false) }
    let keys = MailboxKeys(etcd, "a")
    let requests = CountedRequests()
    let admission = Admission(entries: 100, bytes: 100_000)
    let slow = try EtcdContainer.unopened(etcd.location, through: requests)
      .mailboxWriter(to: "a", admission)
    let bytes = try PropertyListValue(1).binaryBytes()
    #expect(try slow.post(bytes, until: soon) == .posted)
    let lane = try #require(try etcd.read(keys.lanes).items.first?.key)
    var others = 0
    try eventually("its lane is swept") {
      let other = etcd.mailboxWriter(to: "a", admission)
      #expect(try other.post(bytes, until: soon) == .posted)
      others += 1
      return try etcd.item(lane) == nil
    }
    try eventually("all is delivered") { received.count.withLock { $0 } == others + 1 }
    try eventually("all is deleted") { try etcd.read(keys.entries).items.isEmpty }
    try requests.repeatLast()
    #expect(try etcd.read(keys.entries).items.isEmpty && etcd.item(lane) == nil)
    #expect(try slow.post(bytes, until: soon) == .posted)
    try eventually("it is delivered") { received.count.withLock { $0 } == others + 2 }
  }

  private final class Received: Sendable {
    let count = Mutex(0)
  }

  /// Sends and receives a file with a receipt, at noon of a day.
  private func send(day: UInt64) throws {
    let queue = PlainQueue(container: container, name: "q") { day * 86_400_000_000_000 }
    let path = directory.path + "/source"
    try FileDescriptor.open(path, [.writeOnly, .create]).writeAll([1, 2, 3])
    let source = try FileDescriptor.open(path, .readOnly)
    let sender = try queue.sender("a")
    let stage = try sender.stage("f", bytes: 3)
    _ = try stage.copy(
      source, source.status(), durability: .standard, check: {}, copied: { _ in })
    try sender.enqueue(
      [QueueAttachment.key: "f"], keepsReceipt: true, receiptTerm: .dayAfterProcessing)
    let consumer = try queue.consume()
    defer { consumer.close() }
    try #require(try consumer.next(until: soon)).acknowledge()
  }

  @Test("revokes the lease of a value that is replaced or removed, however the change was made")
  func replaced() throws {
    let value = container.value("x")
    try value.replace(with: 1, expiresAfter: .seconds(600))
    #expect(try leases() == 1)
    try value.update(expiresAfter: .seconds(600)) { $0 = 2 }
    try eventually("the first lease has ended") { try leases() == 1 }
    #expect(try value.read() == 2)
    try container.update(["x", "y"]) { $0["x"] = 3 }
    try eventually("the second lease has ended") { try leases() == 0 }
    try value.replace(with: 4, expiresAfter: .seconds(600))
    try value.remove()
    try eventually("the last lease has ended") { try leases() == 0 }
    #expect(try container.value("x").read() == nil)
  }
  @Test("forgets a month after their end who was present and who has sent, but nobody who lives")
  func retention() throws {
    let month = EtcdRetention.term
    let sweep = { (days: TimeInterval) in
      try EtcdRetention(etcd, now: .init(timeIntervalSince1970: days * 86_400)).sweep()
    }
    let stays = try container.presence("stays").enter()
    defer { stays.close() }
    try container.presence("gone").enter().close()
    try container.queue("q").sender("gone").enqueue(1)
    #expect(try sweep(0) == [])
    try container.queue("q").sender("late").enqueue(2)
    #expect(try sweep(29) == [] && sweep(month / 86_400 - 0.5) == [])
    let removed = try sweep(month / 86_400 + 1)
    #expect(removed.count == 2, "\(removed)")
    #expect(removed.allSatisfy { $0.hasSuffix("gone/last") || $0.hasSuffix("s/gone") })
    #expect(try container.presence("stays").members().count == 1)
    #expect(try container.presence("gone").status() == .neverSeen)
    // Its entry waits, and it goes on behind it.
    try container.queue("q").sender("gone").enqueue(3)
    let consumer = try container.queue("q").consume()
    defer { consumer.close() }
    let order = try (0..<3).map { _ in try consumer.next(until: soon)?.payload.intValue }
    #expect(order == [1, 2, 3])
    // The marks do not pile up.
    for day in 32...200 { _ = try sweep(Double(day)) }
    let marks = try etcd.item(etcd.start + Array("sweeps".utf8))
    let count = try PropertyListValue(bytes: marks?.value ?? []).arrayValue?.count
    #expect(count == 31)
  }
}
