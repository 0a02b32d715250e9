import FoundationEssentials
import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("Entries that were stored together", .blocking)
struct SharedBatchTests {
  private let scene: QueueScene
  private var queue: PlainQueue { scene.queue }

  init() throws { scene = try QueueScene() }

  private func take(_ worker: PlainConsumer) throws -> PlainEntry {
    try #require(try worker.next(until: .now))
  }

  @Test("go to several workers, one each, in their order", .bothEngines)
  func shared() throws {
    let ids = try scene.sendTogether(Array(0..<8), from: "a")
    try scene.sendTogether([8], from: "a")
    let workers = try (0..<4).map { _ in try queue.work() }
    var seen: [Int] = []
    for _ in 0..<2 {
      let entries = try workers.map(take)
      #expect(entries.allSatisfy { !$0.isRedelivery && $0.attempt == 1 })
      #expect(entries.map(\.id) == Array(ids[seen.count..<seen.count + 4]))
      let sender = try queue.sender("a")
      #expect(try entries.allSatisfy { try sender.status(of: $0.id) == .taken })
      #expect(
        try ids[(seen.count + 4)...].allSatisfy { try sender.status(of: $0) == .stored })
      for entry in entries { try entry.acknowledge() }
      #expect(try entries.allSatisfy { try sender.status(of: $0.id) == .processed })
      seen += entries.compactMap(\.payload.intValue)
    }
    #expect(seen == Array(0..<8))
    #expect(try take(workers[3]).payload == 8)
  }

  @Test("can be cancelled and listed one by one while workers share them", .bothEngines)
  func waiting() throws {
    let ids = try scene.sendTogether([0, 1, 2, 3], from: "a", keeping: [1, 2])
    let (worker, other) = (try queue.work(), try queue.work())
    let first = try take(worker)
    let sender = try queue.sender("a")
    #expect(try sender.cancel(ids[1]) && !sender.cancel(ids[0]))
    #expect(try sender.receipts().map(\.status) == [.cancelled, .stored])
    #expect(try sender.receipt(of: ids[2])?.payload == 2)
    #expect(try queue.outstanding().map(\.payload.intValue) == [0, 2, 3])
    let second = try take(other)
    #expect(second.payload == 2 && first.payload == 0)
    #expect(try ids.map { try sender.status(of: $0) } == [.taken, .cancelled, .taken, .stored])
    try first.acknowledge()
    worker.close()
    // What a worker had that has left goes to another one, and the rest in its order.
    #expect(try scene.drain(other).map(\.number) == [3])
    try second.fail("torn")
    let ends: [QueueEntryStatus] = [
      .processed, .cancelled, .failed(reason: "torn"), .processed,
    ]
    #expect(try ids.map { try sender.status(of: $0) } == ends)
    for id in ids[1...2] { try sender.forget(id) }
    #expect(try queue.outstanding().isEmpty && sender.receipts().isEmpty)
  }

  @Test("of several senders keep their place when workers share them", .bothEngines)
  func order() throws {
    try scene.sendTogether([0, 1, 2], from: "a")
    try scene.sendTogether([10, 11], from: "b")
    try scene.sendTogether([3, 4], from: "a")
    let workers = try (0..<3).map { _ in try queue.work() }
    var numbers: [Int] = []
    for number in 0..<7 {
      let entry = try take(workers[number % 3])
      numbers += [entry.payload.intValue ?? -1]
      try entry.acknowledge()
    }
    #expect(numbers == [0, 1, 2, 10, 11, 3, 4])
  }

  @Test("are delivered again, marked, if the worker that has one is killed", .bothEngines)
  func redelivered() throws {
    try scene.sendTogether([0, 1, 2], from: "a")
    let victim = try scene.participant()
    #expect(try victim.ask("queue-join q") == "done")
    let worker = try queue.work()
    #expect(try take(worker).payload == 0)
    try eventually("it has one") { try victim.ask("queue-next q") == "a 1" }
    try victim.end()
    // On etcd the other is gone when its session is over.
    let rest = try (0..<2).map { _ in try #require(try worker.next(until: soon)) }
    #expect(
      Set(rest.map { QueueScene.Delivered($0) }) == [.init("a", 1, again: true), .init("a", 2)])
    #expect(rest.allSatisfy { $0.attempt == ($0.isRedelivery ? 2 : 1) })
  }

  @Test("go to a single consumer without another name")
  func alone() throws {
    try scene.sendTogether(Array(0..<4), from: "a")
    let consumer = try queue.consume()
    try take(consumer).acknowledge()
    #expect(scene.directory.listing.contains("/") && !scene.directory.listing.contains("+0.plist"))
    #expect(try scene.drain(consumer).map(\.number) == [1, 2, 3])
  }

  /// After the share, each has its own file, key and outcome.
  @Test("can be cancelled, superseded, copied and listed one by one when they are shared")
  func single() throws {
    let ids = try scene.sendTogether([0, 1, 2, 3], from: "a", keeping: [1, 2])
    let keyed = try scene.sendTogether([4, 5], from: "b", key: "k")
    let worker = try queue.work()
    let first = try take(worker)
    let sender = try queue.sender("a")
    #expect(try sender.cancel(ids[1]) && !sender.cancel(ids[0]))
    #expect(try sender.receipts().map(\.status) == [.cancelled, .stored])
    #expect(try queue.outstanding().map(\.payload.intValue) == [0, 2, 3, 4, 5])

    let second = try queue.work()
    let third = try queue.work()
    #expect(try [take(second), take(third)].map(\.payload.intValue) == [2, 3])
    let fourth = try queue.work()
    #expect(try take(fourth).payload == 4)
    // 5 waits in its own file by now, and its key finds it there.
    let new = try queue.sender("b").enqueue(6, key: "k")
    #expect(try queue.sender("b").status(of: keyed[1]) == .superseded)
    #expect(try queue.sender("b").status(of: new) == .stored)
    try scene.sweep()
    try first.acknowledge()
    #expect(try take(fourth).payload == 6)
    try sender.forget(ids[1])
    #expect(try sender.receipts().map(\.id) == [ids[2]])
  }

  @Test(
    "have one end each, which their sender learns while others still wait", .waiting, .bothEngines)
  func ends() async throws {
    let ids = try scene.sendTogether([0, 1, 2], from: "a", keeping: [0, 1, 2])
    let sender = try queue.sender("a")
    let waits = ids.map { id in Task { try await sender.finalStatus(of: id) } }
    let worker = try await queue.work()
    for number in 0..<3 {
      let entry = try #require(try await worker.next(until: soon))
      if number == 1 { try entry.fail("torn") } else { try entry.acknowledge() }
      let expected: QueueEntryStatus = number == 1 ? .failed(reason: "torn") : .processed
      #expect(try await waits[number].value == expected)
    }
  }

  /// A look during the share would find an entry that moves back to be processed.
  @Test("are never taken for processed while they are shared", .bothEngines)
  func looks() throws {
    let sender = try queue.sender("a")
    for _ in 0..<100 {
      let ids = try scene.sendTogether(Array(0..<6), from: "a")
      let isOver = Mutex(false)
      let wrong = Mutex(0)
      let hasEnded = WakeLatch()
      try startThread(name: "looker") {
        while !isOver.withLock(\.self) {
          // Nothing is acknowledged before the end. An error of the look counts as wrong.
          let ended = try? ids.contains { try sender.status(of: $0).isEnd }
          if ended != false { wrong.withLock { $0 += 1 } }
        }
        hasEnded.raise()
      }
      let workers = try (0..<2).map { _ in try queue.work() }
      let entries = try (0..<6).map { try take(workers[$0 % 2]) }
      isOver.withLock { $0 = true }
      hasEnded.block(until: soon)
      #expect(wrong.withLock(\.self) == 0)
      for entry in entries { try entry.acknowledge() }
    }
  }

  #if DEBUG
    @Test(
      "are neither lost nor doubled when a worker is killed before any step of sharing them",
      arguments: TriedSteps.shares)
    func killed(share: Int) throws {
      try TriedSteps.each(of: share, moreThan: 60) { step in
        let scene = try QueueScene()
        let ids = try scene.sendTogether([0, 1, 2], from: "a", keeping: [1])
        let (handled, wasKilled) = try scene.kill(before: step, of: "queue-share")
        let workers = try (0..<2).map { _ in try scene.queue.work() }
        let again = try workers.flatMap(scene.drain)
        for worker in workers { worker.close() }
        checkDeliveries(handled + again, of: ["a": [0, 1, 2]], "killed before call \(step)")
        let sender = try scene.queue.sender("a")
        #expect(try ids.allSatisfy { try sender.status(of: $0) == .processed })
        try sender.forget(ids[1])
        #expect(try scene.leftovers().isEmpty, "\(step): \(scene.directory.listing)")
        return wasKilled
      }
    }
  #endif
}
