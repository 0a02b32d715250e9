import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

/// As in swift-service-lifecycle.
private protocol Service: Sendable { func run() async throws }

extension WormholeService: Service {}

@Suite("A queue's worker with a handler", .blocking)
struct QueueWorkTests {
  private let scene: QueueScene
  private var queue: PlainQueue { scene.queue }
  private let handled = Handled()

  private final class Handled: Sendable {
    let entries = Mutex<[String]>([])
    func withLock<Result>(_ body: (inout sending [String]) -> sending Result) -> Result {
      entries.withLock(body)
    }
  }

  init() async throws { scene = try await Blocking.run { try QueueScene() } }

  private struct Refusal: Error, CustomStringConvertible { let description = "no paper" }

  private func note(_ entry: QueueEntry<some Any>) {
    let text = "\(entry.payload.intValue ?? -1) \(entry.attempt)\(entry.isRedelivery ? "!" : "")"
    handled.withLock { $0.append(text) }
  }

  private func send(_ numbers: Range<Int>) async throws {
    let sender = try queue.sender("a")
    for number in numbers { try await sender.enqueue(PropertyListValue(number)) }
  }

  /// Runs a service until a condition holds, and cancels it.
  private func run(_ service: any Service, until condition: @escaping @Sendable () throws -> Bool)
    async throws
  {
    let running = Task { try await service.run() }
    do {
      try await Blocking.run { try eventually("what the worker should do is done", condition) }
    } catch {
      running.cancel()
      throw error
    }
    running.cancel()
    try await running.value
  }

  private func entry() async throws -> PlainEntry? {
    let consumer = try await queue.consume()
    return try await consumer.next(until: .now)
  }

  @Test("acknowledges what was handled, and keeps what failed with its last error", .bothEngines)
  func outcomes() async throws {
    try await send(0..<3)
    let worker = queue.worker(attempts: 2, backoff: .milliseconds(1)) { entry in
      note(entry)
      if entry.payload == 1 { throw Refusal() }
    }
    try await run(worker) { try queue.failures().count == 1 && !queue.hasEntries() }
    #expect(handled.withLock { $0.sorted() } == ["0 1", "1 1", "1 2!", "2 1"])
    #expect(try queue.failures().map(\.reason) == ["no paper"])
  }

  @Test("leaves an entry that the handler has ended as that did", .bothEngines)
  func ended() async throws {
    try await send(0..<2)
    let worker = queue.worker { entry in
      note(entry)
      if entry.payload == 0 { try entry.fail("torn", isKept: true) }
      if entry.payload == 1, entry.attempt == 1 {
        try entry.retry(after: .milliseconds(1), because: "later")
      }
    }
    try await run(worker) { try handled.withLock { $0.count == 3 } && !queue.hasEntries() }
    #expect(handled.withLock(\.self) == ["0 1", "1 1", "1 2!"])
    #expect(try queue.failures().map(\.reason) == ["torn"])
  }

  @Test("fails an entry of another shape, and goes on", .bothEngines)
  func shapes() async throws {
    try await send(0..<1)
    try await queue.sender("a").enqueue("text")
    try await send(2..<3)
    let jobs = queue.container.queue("q", of: Int.self)
    try await run(jobs.worker { note($0) }) {
      try queue.failures().count == 1 && !queue.hasEntries()
    }
    #expect(handled.withLock(\.self) == ["0 1", "2 1"])
  }

  // A second waiting task ended the process.
  @Test(
    "is one of several tasks that wait at the same consumer, and each gets entries", .bothEngines)
  func severalTasks() async throws {
    let consumer = try await queue.consume()
    let waiting = (0..<3).map { _ in
      Task { try await consumer.next(until: .now + testPatience)?.payload.intValue }
    }
    try await eventuallyAsync("one waits") { consumer.isAwaited }
    try await send(0..<3)
    var numbers: Set<Int?> = []
    for task in waiting { numbers.insert(try await task.value) }
    #expect(numbers == [0, 1, 2])
    try await Blocking.run { consumer.close() }
  }

  // Each entry had failed, and no handler was called.
  @Test("makes at least one attempt")
  func oneAttempt() async throws {
    try await send(0..<1)
    try await run(queue.worker(attempts: 0) { note($0) }) { try !queue.hasEntries() }
    #expect(handled.withLock(\.self) == ["0 1"])
    #expect(try queue.failures().isEmpty)
  }

  @Test("handles so many entries at a time, and no more")
  func concurrency() async throws {
    try await send(0..<9)
    let inHand = Mutex((now: 0, most: 0))
    let worker = queue.worker(concurrency: 3) { entry in
      inHand.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
      // The first three end together.
      try await eventuallyAsync("three are in hand") { inHand.withLock { $0.most == 3 } }
      inHand.withLock { $0.now -= 1 }
    }
    try await run(worker) { try !queue.hasEntries() }
    #expect(inHand.withLock(\.most) == 3)
  }

  /// ```
  /// worker                        test
  /// handles 0
  ///                               cancels it
  ///                               lets the handler end
  /// acknowledges 0, takes no 1
  /// ```
  @Test("that is cancelled lets the entry in its hand end, and begins no other", .bothEngines)
  func cancelled() async throws {
    try await send(0..<2)
    let mayEnd = Mutex(false)
    let worker = queue.worker { entry in
      note(entry)
      while !mayEnd.withLock(\.self) { await Task.yield() }
    }
    let running = Task { try await worker.run() }
    try await eventuallyAsync("it handles one") { handled.withLock { !$0.isEmpty } }
    running.cancel()
    mayEnd.withLock { $0 = true }
    try await running.value
    #expect(handled.withLock(\.self) == ["0 1"])
    let next = try #require(try await entry())
    #expect(next.payload == 1 && next.attempt == 1 && !next.isRedelivery)
  }

  @Test("that is cancelled a hundred times in the middle of one entry has made no attempt")
  func restarts() async throws {
    try await send(0..<1)
    for _ in 0..<100 {
      let begun = Mutex(false)
      let worker = queue.worker(attempts: 3, grace: .zero) { entry in
        #expect(entry.attempt == 1)
        begun.withLock { $0 = true }
        try await Task.sleep(for: .seconds(60))
      }
      try await run(worker) { begun.withLock(\.self) }
    }
    #expect(try queue.failures().isEmpty)
    try await run(queue.worker(attempts: 3) { note($0) }) { try !queue.hasEntries() }
    #expect(handled.withLock(\.self) == ["0 1!"])
  }

  @Test("that ends in order, or gives an entry back, has made no attempt", .bothEngines)
  func order() async throws {
    try await send(0..<1)
    for round in 0..<3 {
      let consumer = try await queue.consume(attempts: 1)
      let entry = try #require(try await consumer.next(until: .now))
      #expect(entry.attempt == 1 && entry.isRedelivery == (round > 0))
      try await Blocking.run {
        if round == 1 { try entry.giveBack() }
        consumer.close()
      }
    }
    let entry = try #require(try await entry())
    #expect(entry.attempt == 1 && entry.isRedelivery)
  }

  @Test("of which one of a batch is given back has attempted none but the others")
  func batch() throws {
    try scene.sendTogether([0, 1, 2], from: "a")
    let consumer = try queue.consume()
    for _ in 0..<2 { _ = try consumer.next(until: .now) }
    consumer.close()
    let next = try queue.consume()
    for (number, isAgain) in [(0, true), (1, true), (2, false)] {
      let entry = try #require(try next.next(until: .now))
      #expect(entry.payload.intValue == number && entry.attempt == 1)
      #expect(entry.isRedelivery == isAgain)
    }
  }

  @Test("A leader and the follower of a log run and end in the same way", .bothEngines)
  func services() async throws {
    let leads = Mutex(false)
    try await run(
      queue.container.leader("l").service { _ in
        leads.withLock { $0 = true }
        try await Task.sleep(for: .seconds(60))
      }
    ) { leads.withLock(\.self) }

    let log = queue.container.log("l")
    for number in 0..<3 { try await log.append(PropertyListValue(number)) }
    let seen = Mutex<[Int]>([])
    let follower = log.follower("s") { message in
      let number = message.payload.intValue ?? -1
      if number == 1, seen.withLock({ !$0.contains(-2) }) {
        seen.withLock { $0.append(-2) }
        throw Refusal()
      }
      seen.withLock { $0.append(number) }
    }
    // The error ends it; the next run begins with that message.
    await #expect(throws: Refusal.self) { try await follower.run() }
    try await run(follower) { seen.withLock { $0.last == 2 } }
    #expect(seen.withLock(\.self) == [0, -2, 1, 2])
  }
}
