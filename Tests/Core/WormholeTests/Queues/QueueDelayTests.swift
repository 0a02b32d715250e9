import FoundationEssentials
import Synchronization
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeSystem

@Suite("A queue with delays", .blocking)
struct QueueDelayTests {
  private let scene: QueueScene
  private var queue: PlainQueue { scene.queue }

  init() throws { scene = try QueueScene() }

  /// The same queue with a clock of the test's own, in seconds.
  private func queue(clock: @escaping @Sendable () -> UInt64) -> PlainQueue {
    PlainQueue(container: queue.container, name: "q", clock: { clock() * 1_000_000_000 })
  }

  private func next(
    _ consumer: PlainConsumer, within patience: Duration = .seconds(30)
  ) throws -> Int? {
    let entry = try consumer.next(until: .now + patience)
    try entry?.acknowledge()
    return entry?.payload.intValue
  }

  // MARK: Names

  @Test("keeps the time in the name of an entry")
  func names() {
    let plain = EntryFile(order: 255, sender: "a@+~", count: 3, bytes: 12)
    let late = EntryFile(order: 256, sender: "a", count: 1, bytes: 2, due: 4_096)
    #expect(plain.text == "00000000000000ff-a@+~-3-12.plist")
    #expect(late.text == "0000000000000100-a-1-2@0000000000001000.plist")
    for name in [plain, late] {
      #expect(EntryFile(name.text) == name)
      #expect(EntryFile.mayGoAhead(Array(name.text.utf8)) == (name.due != nil))
    }
    let part = plain.of(2)
    #expect(part.text == "00000000000000ff-a@+~-3-12+2.plist" && part.count == 1)
    #expect(EntryFile(part.text) == part && part.whole == plain && part != plain)
    #expect(EntryFile.mayGoAhead(Array(part.text.utf8)))
    #expect(QueueEntryID(part.text + "/2") == nil)
    #expect(QueueEntryID(batch: part, index: 2) == QueueEntryID(batch: plain, index: 2))
    for other in [
      "00000000000000ff-a-3-12+3.plist", "00000000000000ff-a-3-12+01.plist",
      "00000000000000ff-a-1-12+0.plist", "00000000000000ff-a-3-12+2-2.plist",
      "+00000000000000ff-a-1-2.plist", "~00000000000000ff-a-1-2.plist",
      "00000000000000ff-a-1-2@.plist", "00000000000000ff-a-1-2@000000000000100.plist",
      "00000000000000ff-a-1-2@000000000000100G.plist", "@0000000000001000.plist",
    ] { #expect(EntryFile(other) == nil, "\(other)") }
  }

  // MARK: Delays

  @Test("holds back nothing else for a delayed entry, even past a restart, and counts it")
  func holdsNothingBack() throws {
    let sender = try queue.sender("a")
    let id = try sender.enqueue(0, delay: .seconds(3_600))
    try sender.enqueue(1)
    #expect(try scene.drain() == [.init("a", 1)])
    #expect(try sender.status(of: id) == .stored)
    let due = try #require(id.due)
    #expect(abs(due.timeIntervalSinceNow - 3_600) < 600)
    #expect(QueueEntryID(id.description) == id)
    let consumer = try queue.consume()
    #expect(try next(consumer, within: .zero) == nil)
    #expect(try !consumer.isIdle())
    let report = try #require(try queue.container.report().names.queues.first)
    #expect(report.waiting == 1 && report.delayed == 1 && report.oldest == nil)
    #expect(report.nextDue == due)
  }

  @Test(
    "wakes a waiting consumer when an entry is due, by one timer", .bothEngines,
    .timeLimit(.minutes(1)))
  func wakes() async throws {
    let consumer = try await queue.consume()
    // It looks once more at its own deadline, which must not come first.
    let waiter = Task { try await consumer.next(until: .now + .seconds(3_600)) }
    try eventually("it waits") { consumer.isAwaited }
    try await queue.sender("a").enqueue(0, delay: .milliseconds(40))
    try await queue.sender("a").enqueue(1, delay: .seconds(3_600))
    let entry = try #require(
      try await withTaskCancellationHandler {
        try await waiter.value
      } onCancel: {
        waiter.cancel()
      }
    )
    #expect(entry.payload == 0 && entry.attempt == 1)
    #expect(try #require(entry.id.due) <= Date())
  }

  @Test("delivers a delayed entry as if it had been sent when it was due", .bothEngines)
  func place() throws {
    let now = Mutex<UInt64>(100)
    let queue = queue { now.withLock { $0 } }
    let sender = try queue.sender("a")
    try sender.enqueue(0, delay: .seconds(10))
    now.withLock { $0 = 105 }
    try sender.enqueue(1)
    try sender.enqueue(2, delay: .seconds(1))
    now.withLock { $0 = 115 }
    try sender.enqueue(3)
    let consumer = try queue.consume()
    #expect(try (0..<4).map { _ in try next(consumer, within: .zero) } == [1, 2, 0, 3])
  }

  @Test("delays an entry no longer than it should if the clock was set back", .bothEngines)
  func clock() throws {
    let now = Mutex<UInt64>(1_000_000)
    let queue = queue { now.withLock { $0 } }
    try queue.sender("a").enqueue(0, delay: .milliseconds(300))
    now.withLock { $0 = 0 }
    let consumer = try queue.consume()
    // Each look lists what waits, which must not begin the delay again.
    try eventually("it is due") { try next(consumer, within: .zero) == 0 }
  }

  @Test("lets a sender cancel and supersede an entry until it is due", .bothEngines)
  func withdrawn() throws {
    let sender = try queue.sender("a")
    let cancelled = try sender.enqueue(0, delay: .seconds(3_600))
    let superseded = try sender.enqueue(1, key: "k", delay: .seconds(3_600))
    let consumer = try queue.consume()
    #expect(try next(consumer, within: .zero) == nil)
    #expect(try sender.cancel(cancelled))
    try sender.enqueue(2, key: "k", delay: .milliseconds(30))
    #expect(try next(consumer) == 2)
    #expect(try consumer.isIdle())
    #expect(try sender.status(of: cancelled) == .cancelled)
    #expect(try sender.status(of: superseded) == .superseded)
  }

  @Test(
    "gives a delayed entry to one of its workers, and to another if that is killed", .bothEngines)
  func workers() throws {
    try queue.sender("a").enqueue(0, delay: .milliseconds(30))
    let victim = try scene.participant()
    #expect(try victim.ask("queue-join q") == "done")
    let worker = try queue.work()
    try eventually("it is due") { try victim.ask("queue-next q") == "a 0" }
    #expect(try worker.next(until: .now) == nil)
    try victim.end()
    let again = try #require(try worker.next(until: soon))
    #expect(QueueScene.Delivered(again) == .init("a", 0, again: true))
  }

  #if DEBUG
    @Test(
      "loses and doubles no delayed entry if its consumer is killed before any step",
      arguments: TriedSteps.shares)
    func killed(share: Int) throws {
      try TriedSteps.each(of: share, moreThan: 30) { step in
        let scene = try QueueScene()
        let sender = try scene.queue.sender("a")
        let id = try sender.enqueue(0, delay: .milliseconds(1))
        try eventually("it is due") { try #require(id.due) <= Date() }
        for number in 1..<3 { try sender.enqueue(PropertyListValue(number)) }
        let (handled, wasKilled) = try scene.kill(before: step, of: "queue-work")
        let again = try scene.drain()
        checkDeliveries(handled + again, of: ["a": [0, 1, 2]], "killed before call \(step)")
        #expect(try scene.leftovers().isEmpty, "\(step): \(scene.directory.listing)")
        return wasKilled
      }
    }
  #endif

  @Test("delivers an entry that is due to a consumer that has found others already")
  func overtaking() throws {
    let sender = try queue.sender("a")
    for number in 0..<4 { try sender.enqueue(PropertyListValue(number)) }
    let consumer = try queue.consume()
    #expect(try next(consumer) == 0)
    try sender.enqueue(8, delay: .milliseconds(1))
    let noticed = Awaited<Void>()
    ChangeMonitor.shared.afterEvents { noticed.settle(()) }
    noticed.wait()
    var rest: [Int?] = []
    for _ in 0..<4 { rest.append(try next(consumer)) }
    #expect(Set(rest) == [1, 2, 3, 8] && rest.filter { $0 != 8 } == [1, 2, 3])
  }

  @Test("keeps each in its place when sends gather", .bothEngines)
  func gathering() async throws {
    let sender = try queue.sender("a")
    try await withThrowingTaskGroup { group in
      for number in 0..<60 {
        let delay: Duration? = number % 10 == 0 ? .seconds(3_600) : nil
        group.addTask {
          _ = try await sender.enqueue(PropertyListValue(number), delay: delay)
        }
      }
      try await group.waitForAll()
    }
    let numbers = try scene.drain().map(\.number)
    #expect(Set(numbers) == Set((0..<60).filter { $0 % 10 != 0 }))
  }
}
