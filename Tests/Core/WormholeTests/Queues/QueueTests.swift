import Dispatch
import FoundationEssentials
import Synchronization
import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeSystem

@Suite("A queue", .blocking)
struct QueueTests {
  let scene: QueueScene
  var queue: PlainQueue { scene.queue }

  init() throws { scene = try QueueScene() }

  @Test("delivers sent entries, in the order of each sender, and then has none left", .bothEngines)
  func order() throws {
    let a = try queue.sender("a")
    let b = try queue.sender("b-with/any name")
    let ids = try (0..<5).map { number in
      try b.enqueue(PropertyListValue(number))
      return try a.enqueue(
        PropertyListValue(number), durability: number == 2 ? .durable : .standard)
    }
    #expect(try a.status(of: ids[4]) == .stored)
    let consumer = try queue.consume()
    let first = try #require(try consumer.next(until: .now))
    #expect(first.sender == "b-with/any name" && !first.isRedelivery)
    #expect(try a.status(of: ids[0]) == .stored)
    try first.acknowledge()
    let second = try #require(try consumer.next(until: .now))
    #expect(second.id == ids[0])
    #expect(try a.status(of: ids[0]) == .taken)
    try second.acknowledge()
    try second.acknowledge()
    #expect(try a.status(of: ids[0]) == .processed)
    checkDeliveries(
      [.init(first), .init(second)] + (try scene.drain(consumer)),
      of: ["a": [0, 1, 2, 3, 4], "b-with/any name": [0, 1, 2, 3, 4]], "\(scene.directory.listing)")
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
    #expect(try queue.container.queueNames() == ["q"])
  }

  @Test("carries values of the program's own types; so does a presence")
  func types() throws {
    struct Job: Codable, Equatable { var page: Int, name: String? }
    let job = Job(page: 3, name: nil)
    try queue.sender("a").enqueue(PropertyListValue(encoding: job))
    let entry = try #require(try queue.consume().next(until: .now))
    #expect(try entry.payload.decode(as: Job.self) == job)
    #expect(throws: DecodingError.self) { try entry.payload.decode(as: [Int].self) }
    try entry.acknowledge()
    let presence = queue.container.presence("workers")
    let registration = try presence.enter(content: PropertyListValue(encoding: job))
    #expect(try presence.members().first?.content?.decode() == job)
    registration.close()
  }

  @Test("gives its entries to a loop, which ends when the consumer is closed", .bothEngines)
  func loop() async throws {
    let sender = try queue.sender("a")
    let consumer = try await queue.consume()
    let participant = try scene.participant()
    let received = Mutex<[Int]>([])
    let loop = Task {
      for try await entry in consumer.entries() {
        try entry.acknowledge()
        // Afterwards, because the consumer is closed as soon as the second is there.
        received.withLock { $0.append(entry.payload.intValue ?? -1) }
      }
    }
    // The loop waits for the second, which another process sends.
    _ = try await sender.enqueue(0)
    try eventually("the first is there") { received.withLock { $0 == [0] } }
    _ = try participant.ask("queue-send q b 1 1 \(scene.directory.path)/log")
    try eventually("the second is there") { received.withLock { $0.count == 2 } }
    consumer.close()
    try await loop.value
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }

  @Test(
    "learns what a consumer has done until it was closed, and later, unless somebody else consumes",
    .bothEngines)
  func settledLate() throws {
    let ids = try scene.sendTogether([0, 1, 2], from: "a")
    let sender = try queue.sender("a")
    let last = try sender.enqueue(3)
    let first = try queue.consume()
    let entries = try (0..<4).map { _ in try #require(try first.next(until: .now)) }
    try entries[0].acknowledge()
    first.close()
    try entries[1].acknowledge()
    try entries[3].fail("why")
    #expect(try sender.status(of: ids[1]) == .processed)
    #expect(try sender.status(of: last) == .failed(reason: "why"))
    let second = try queue.consume()
    let error = #expect(throws: WormholeError.self) { try entries[2].acknowledge() }
    #expect(error?.code == .leaseLost)
    #expect(try scene.drain(second) == [.init("a", 2, again: true)])
  }

  @Test("ends a loop whose task is cancelled, and goes on after another consumer had the queue")
  func loopEnds() async throws {
    let consumer = try await queue.consume()
    let cancelled = Task { try await consumer.next() }
    try eventually("it waits") { consumer.isAwaited }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    let replaced = Task { () -> PlainEntry? in
      for try await entry in consumer.entries() { return entry }
      return nil
    }
    try eventually("it waits") { consumer.isAwaited }
    // As a process does that found this one stopped.
    let place = try #require(try queue.open())
    let own = try #require(try place.consumers().first)
    try place.move("taken/\(own)", to: "taken/another")
    try await queue.sender("a").enqueue(1)
    #expect(try await replaced.value?.payload == 1)
    #expect(consumer.epochs == 2)
  }

  @Test("stores entries sent during another write as one file, and acknowledges each", .bothEngines)
  func together() throws {
    // The first stamp is given only when the others have gathered.
    let gate = DispatchSemaphore(value: 0)
    let isFirst = Atomic(true)
    let queue = PlainQueue(container: self.queue.container, name: "q") {
      if isFirst.exchange(false, ordering: .relaxed) { gate.wait() }
      return PlainQueue.nanosecondsSince1970()
    }
    let sender = try queue.sender("a")
    let ids = Mutex<Set<QueueEntryID>>([])
    let group = DispatchGroup()
    // Each takes a thread, and other tests have most of those that the dispatch library gives a process.
    let count = 12
    for number in 0..<count {
      Blocking.queue().async(group: group) {
        do {
          let id = try sender.enqueue(PropertyListValue(number))
          ids.withLock { _ = $0.insert(id) }
        } catch {
          Issue.record(error)
        }
      }
    }
    try eventually("all but one have gathered") { sender.submissions.gathered == count - 1 }
    gate.signal()
    group.wait()
    #expect(ids.withLock(\.count) == count)
    #expect(try scene.count(.waiting) == 2)
    #expect(Set(try scene.drain().map(\.number)) == Set(0..<count))
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }

  @Test(
    "redelivers unacknowledged entries first and marked, and the rest of a file as well",
    .bothEngines)
  func redelivery() throws {
    try scene.sendTogether([0, 1, 2, 3], from: "a")
    try scene.sendTogether([4], from: "a")
    let victim = try queue.consume()
    let first = try #require(try victim.next(until: .now))
    let second = try #require(try victim.next(until: .now))
    for _ in 2...4 { _ = try #require(try victim.next(until: .now)) }
    try second.acknowledge()
    #expect(try queue.sender("a").status(of: first.id) == .taken)
    #expect(try queue.sender("a").status(of: second.id) == .processed)
    victim.close()
    try scene.sendTogether([5], from: "a")
    #expect(
      try scene.drain() == [
        .init("a", 0, again: true), .init("a", 2, again: true), .init("a", 3, again: true),
        .init("a", 4, again: true), .init("a", 5),
      ])
    #expect(throws: WormholeError.self) { try first.acknowledge() }
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }

  @Test(
    "reports failures to its sender, even a restarted one, until the sender clears them",
    .bothEngines)
  func failure() throws {
    let ids = try scene.sendTogether([0, 1], from: "a")
    let consumer = try queue.consume()
    try #require(try consumer.next(until: .now)).fail("no paper")
    try #require(try consumer.next(until: .now)).acknowledge()
    let sender = try queue.sender("a")
    #expect(try sender.status(of: ids[0]) == .failed(reason: "no paper"))
    #expect(try sender.status(of: #require(QueueEntryID("\(ids[1])"))) == .processed)
    #expect(try sender.outcomes().map(\.id) == [ids[0]])
    #expect(try queue.sender("b").outcomes().isEmpty)
    try sender.forget(ids[0])
    #expect(try sender.outcomes().isEmpty)
  }

  @Test("does not deliver expired entries, and reports them", .bothEngines)
  func expiry() throws {
    let sender = try queue.sender("a")
    let late = try sender.enqueue(0, expires: .zero)
    try sender.enqueue(1, expires: .seconds(3_600))
    #expect(try scene.drain() == [.init("a", 1)])
    #expect(try sender.status(of: late) == .expired)
    // By the time of day if the machine has been restarted since.
    var entry: PropertyListValue = [:]
    Expiry(after: .seconds(3_600)).write(into: &entry)
    entry["uptime"] = 0
    #expect(try #require(Expiry(entry)).hasPassed)
    entry["namespace"] = 1
    #expect(try !#require(Expiry(entry)).hasPassed)
    entry["expires"] = .date(.init(timeIntervalSince1970: 0))
    #expect(try #require(Expiry(entry)).hasPassed)
  }

  @Test("does not deliver cancelled entries, and cancels no taken ones", .bothEngines)
  func cancelling() throws {
    let sender = try queue.sender("a")
    let ids = try scene.sendTogether([0, 1, 2], from: "a")
    let alone = try sender.enqueue(3)
    #expect(try sender.cancel(ids[1]) && sender.cancel(alone) && sender.cancel(alone))
    #expect(try scene.count(.waiting) == 1, "a completely cancelled file is gone")
    #expect(try sender.status(of: ids[1]) == .cancelled)
    #expect(try sender.status(of: alone) == .cancelled)
    let consumer = try queue.consume()
    let first = try #require(try consumer.next(until: .now))
    #expect(try !sender.cancel(ids[0]) && !sender.cancel(ids[2]))
    try first.acknowledge()
    #expect(try scene.drain(consumer) == [.init("a", 2)])
    #expect(try !sender.cancel(ids[0]))
    #expect(try sender.outcomes().map(\.id) == [ids[1], alone])
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }

  @Test(
    "refuses more than its limits, over all senders, and accepts more when there is room",
    .bothEngines)
  func limits() throws {
    let sender = try queue.sender("a", limits: .init(entries: 20, bytes: 1 << 20))
    for number in 0..<10 { try queue.sender("b").enqueue(PropertyListValue(number)) }
    for number in 0..<10 { try sender.enqueue(PropertyListValue(number)) }
    let error = #expect(throws: WormholeError.self) { try sender.enqueue(10) }
    #expect(error?.code == .queueFull)
    #expect(try scene.count(.waiting) == 20)
    #expect(try scene.drain().count == 20)
    try sender.enqueue(10)
    let small = try queue.sender("c", limits: .init(entries: 20, bytes: 1_000))
    #expect(throws: WormholeError.self) {
      try small.enqueue(.string(.init(repeating: "x", count: 1_000)))
    }
    #expect(try scene.drain() == [.init("a", 10)], "nothing was dropped, nothing half sent")
  }

  @Test("puts a damaged file aside, delivers the rest, and reports it to the sender")
  func damaged() throws {
    let sender = try queue.sender("a")
    let ids = try (0..<3).map { try sender.enqueue(PropertyListValue($0)) }
    let path = scene.place + "/pending/" + ids[1].batch.text
    try FileDescriptor.open(path, [.writeOnly, .truncate]).writeAll(Array("bplist00 no".utf8))
    #expect(try scene.drain() == [.init("a", 0), .init("a", 2)])
    guard case .failed = try sender.status(of: ids[1]) else {
      Issue.record("\(try sender.status(of: ids[1]))")
      return
    }
    let aside = try FileDescriptor.open(
      scene.directory.path + "/quarantine", [.readOnly, .directory]
    ).entries()
    #expect(aside.count == 1 && aside[0].name.hasPrefix(ids[1].batch.text.prefix(20).description))
  }

  @Test("sends at the present time after a clock that was ahead, once nothing from then is left")
  func clockSetRight() throws {
    let time = Mutex<UInt64>(7_200_000_000_000)
    let clock: @Sendable () -> UInt64 = { time.withLock { $0 } }
    let queue = PlainQueue(container: self.queue.container, name: "q", clock: clock)
    let sender = try queue.sender("a")
    let ahead = try sender.enqueue(0)
    time.withLock { $0 = 1_000_000_000 }
    #expect(ahead.isBefore(try sender.enqueue(1)))
    let consumer = try queue.consume()
    try eventually("the time of sending is right") {
      while let entry = try consumer.next(until: .now) { try entry.acknowledge() }
      return try sender.enqueue(2).sent.timeIntervalSince1970 < 10
    }
  }

  @Test("keeps a sender's order when the clock is set back, even over a restart", .bothEngines)
  func clockSetBack() throws {
    let time = Mutex<UInt64>(2_000)
    let clock: @Sendable () -> UInt64 = { time.withLock { $0 } }
    let queue = PlainQueue(container: self.queue.container, name: "q", clock: clock)
    let sender = try queue.sender("a")
    try sender.enqueue(0)
    time.withLock { $0 = 1_000 }
    try sender.enqueue(1)
    try queue.sender("a").enqueue(2)
    let consumer = try queue.consume()
    #expect(try consumer.next(until: .now)?.payload == 0)
    time.withLock { $0 = 500 }
    try queue.sender("a").enqueue(3)
    #expect(try scene.drain(consumer) == [.init("a", 1), .init("a", 2), .init("a", 3)])
  }

  @Test("wakes a waiting consumer, task or thread", .bothEngines)
  func waking() async throws {
    let consumer = try await queue.consume()
    #expect(try await consumer.next(until: .now) == nil)
    async let waiting = consumer.next(until: soon)
    try await queue.sender("a").enqueue(7)
    let entry = try #require(try await waiting)
    #expect(entry.payload == 7)
    try entry.acknowledge()
    let waiter = Task { try await consumer.next(until: soon) }
    waiter.cancel()
    await #expect(throws: CancellationError.self) { try await waiter.value }
  }

  @Test("takes no foreign names for batches")
  func names() throws {
    let name = EntryFile(order: 255, sender: "a-1-b", count: 3, bytes: 12)
    #expect(name.text == "00000000000000ff-a-1-b-3-12.plist")
    #expect(EntryFile(name.text) == name)
    for other in [
      "", "x", "ff-a-1-2.plist", "00000000000000FF-a-1-2.plist", "00000000000000ff-a-0-2.plist",
      "00000000000000ff--1-2.plist", "00000000000000ff-a-1-99999999999999.plist",
      "00000000000000ff-a-01-2.plist", "00000000000000ff-a-1-2", "+0000000000000ff-a-1-2.plist",
    ] { #expect(EntryFile(other) == nil, "\(other)") }
    #expect(throws: WormholeError.self) { try queue.sender(.init(repeating: "x", count: 161)) }
  }

  @Test("is held open by its consumer, which notices that it was moved away, and makes a new one")
  func movedAway() async throws {
    try await queue.sender("a").enqueue(0)
    let consumer = try await queue.consume()
    #expect(try await consumer.next(until: .now)?.payload == 0)
    let waiting = Task { try await consumer.next() }
    try eventually("it waits") { consumer.isAwaited }
    try rename(
      scene.place, at: Directory.current, to: scene.directory.path + "/elsewhere",
      at: Directory.current)
    try await queue.sender("a").enqueue(1)
    #expect(try await waiting.value.payload == 1)
    #expect(consumer.epochs == 2)
  }

  @Test("is made again by a sender that holds it open, after it was removed")
  func removedBetweenSends() throws {
    let sender = try scene.queue.sender("a")
    try sender.enqueue(0)
    #expect(try scene.drain().map(\.number) == [0])
    try FileManager.default.removeItem(atPath: scene.place)
    try sender.enqueue(1)
    #expect(try scene.drain().map(\.number) == [1])
  }

  @Test("trusts only the entries in two listings, so that no missed one is overtaken")
  func racyListing() {
    func name(_ order: UInt64, _ sender: String = "a") -> EntryFile {
      EntryFile(order: order, sender: sender, count: 1, bytes: 1)
    }
    // The first misses 1, which is older than 2; the second shows new ones, but not 3.
    var listings = [[name(2), name(9, "b")], [name(4), name(2), name(1), name(9, "b")]]
    #expect(
      EntryFile.ordered { (listings.removeFirst(), false) } == [name(1), name(2), name(9, "b")])
    // A snapshot needs no second one.
    #expect(EntryFile.ordered { ([name(2), name(1)], true) } == [name(1), name(2)])
  }

  #if DEBUG
    @Test("lists a short queue once, and one that takes several calls twice")
    func listings() throws {
      let sender = try scene.queue.sender("a")
      func calls() throws -> Int {
        let calls = Mutex(0)
        let plan = Faults.Plan { call, _ in
          if call == .getdents64 { calls.withLock { $0 += 1 } }
          return .proceed
        }
        let place = try scene.queue.openOrMake()
        _ = try Faults.$plan.withValue(plan) { try place.ordered(QueueDirectory.pending) }
        return calls.withLock(\.self)
      }
      for number in 0..<3 { try sender.enqueue(PropertyListValue(number)) }
      #expect(try calls() == 2)
      for number in 3..<100 { try sender.enqueue(PropertyListValue(number)) }
      let many = try calls()
      #expect(many >= 6 && many.isMultiple(of: 2))
    }
  #endif
}
