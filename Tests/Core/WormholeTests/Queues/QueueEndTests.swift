import Dispatch
import Synchronization
import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeSystem

@Suite("The end of an entry", .blocking)
struct QueueEndTests {
  let scene: QueueScene
  var queue: PlainQueue { scene.queue }

  init() throws { scene = try QueueScene() }

  /// Tasks that wait for outcomes, and the reported outcomes.
  private final class Outcomes: Sendable {
    let ends = Mutex<[(id: QueueEntryID, status: QueueEntryStatus)]>([])
    let failures = Mutex<[String]>([])
    let tasks = Mutex<[Task<Void, Never>]>([])

    func wait(for id: QueueEntryID, of sender: PlainSender) {
      let task = Task {
        do {
          let status = try await sender.finalStatus(of: id)
          ends.withLock { $0.append((id, status)) }
        } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
      tasks.withLock { $0.append(task) }
    }

    func cancel() { for task in tasks.withLock({ $0 }) { task.cancel() } }

    var ids: [QueueEntryID] { ends.withLock { $0.map(\.id) } }
    var statuses: [QueueEntryStatus] { ends.withLock { $0.map(\.status) } }
    var hasFailed: Bool { failures.withLock { !$0.isEmpty } }
  }

  @Test(
    "is reported at once to threads and tasks that wait for it, and later on request", .bothEngines)
  func waiting() async throws {
    let sender = try queue.sender("a")
    let ids = try (0..<3).map { try sender.enqueue(PropertyListValue($0)) }
    #expect(try await sender.finalStatus(of: ids[0], until: .now) == .stored)
    async let first = sender.finalStatus(of: ids[0])
    async let second = Blocking.run {
      try sender.finalStatus(of: ids[1], until: soon)
    }
    let consumer = try await queue.consume()
    // While they wait, or before.
    for _ in 0..<2 {
      try #require(try await consumer.next(until: .now + .seconds(5))).acknowledge()
    }
    #expect(try await first == .processed)
    #expect(try await second == .processed)
    _ = try await consumer.next(until: .now)
    #expect(try await sender.finalStatus(of: ids[2], until: .now + .milliseconds(1)) == .taken)
    let waiter = Task { try await sender.finalStatus(of: ids[2]) }
    waiter.cancel()
    await #expect(throws: CancellationError.self) { try await waiter.value }
  }

  @Test(
    "reaches each waiter, whatever the outcome, also while the rest of its file waits", .bothEngines
  )
  func observing() throws {
    let sender = try queue.sender("a")
    let outcomes = Outcomes()
    let early = try sender.enqueue(0, expires: .zero)
    #expect(try scene.drain().isEmpty)
    let batch = try scene.sendTogether([1, 2, 3, 4, 5], from: "a")
    let late = try sender.enqueue(6)
    for id in [early, late] + batch { outcomes.wait(for: id, of: sender) }
    try eventually("what had ended before is reported") { outcomes.ids == [early] }
    #expect(try sender.cancel(batch[4]))
    try eventually("what is cancelled is reported while the rest of its file waits") {
      outcomes.ids.last == batch[4]
    }
    let consumer = try queue.consume()
    let entries = try (1...4).map { _ in try #require(try consumer.next(until: .now)) }
    try entries[1].fail("why not")
    try eventually("a failure is reported") { outcomes.ids.last == batch[1] }
    try entries[0].acknowledge()
    try eventually("one of a file that is handled is reported") { outcomes.ids.last == batch[0] }
    #expect(try sender.cancel(late))
    try eventually("a cancelled file is reported") { outcomes.ids.last == late }
    try entries[2].acknowledge()
    try entries[3].acknowledge()
    try eventually("the last of the file are reported") { outcomes.ids.count == 7 }
    #expect(Set(outcomes.ids) == Set([early, late] + batch))
    #expect(outcomes.statuses.last == .processed)
  }

  @Test("is reported after another consumer took over, and after the queue was removed")
  func replaced() throws {
    let sender = try queue.sender("a")
    let outcomes = Outcomes()
    let ids = try (0..<3).map { try sender.enqueue(PropertyListValue($0)) }
    for id in ids { outcomes.wait(for: id, of: sender) }
    let first = try queue.consume()
    #expect(try first.next(until: .now)?.payload == 0)
    first.close()
    let second = try queue.consume()
    let again = try #require(try second.next(until: .now))
    #expect(again.isRedelivery)
    try again.acknowledge()
    try eventually("the first is reported") { outcomes.ids == [ids[0]] }
    // An entry that is nowhere any more counts as processed.
    try rename(
      scene.place, at: Directory.current, to: scene.directory.path + "/elsewhere",
      at: Directory.current)
    try eventually("all are reported") { Set(outcomes.ids) == Set(ids) }
  }

  @Test(
    "of a thousand entries is reported through one set of watches, and none is missed", .bothEngines
  )
  func many() throws {
    let sender = try queue.sender("a")
    // Each takes some round trips on etcd.
    let count = TestEngine.current == .directory ? 1_000 : 100
    let outcomes = Outcomes()
    let group = DispatchGroup()
    let queue = queue
    Blocking.queue().async(group: group) {
      do {
        let consumer = try queue.consume()
        for _ in 0..<count { try consumer.next(until: soon)?.acknowledge() }
      } catch {
        Issue.record(error)
      }
    }
    var ids: [QueueEntryID] = []
    for number in 0..<count {
      ids.append(try sender.enqueue(PropertyListValue(number)))
      outcomes.wait(for: ids[number], of: sender)
    }
    group.wait()
    try eventually("all are reported") { outcomes.ids.count == count }
    #expect(Set(outcomes.ids) == Set(ids))
    #expect(!outcomes.hasFailed)
    try eventually("nothing is watched any more") { sender.ends.watches == 0 }
  }

  @Test("is not reported to a cancelled task, which leaves no watches behind")
  func cancelled() throws {
    let sender = try queue.sender("a")
    let outcomes = Outcomes()
    let id = try sender.enqueue(0)
    outcomes.wait(for: id, of: sender)
    try eventually("it watches") { sender.ends.watches == 4 }
    outcomes.cancel()
    try eventually("it does not watch any more") { sender.ends.watches == 0 }
    #expect(try scene.drain().count == 1)
    #expect(outcomes.ids.isEmpty)
    try eventually("the task ends") { outcomes.hasFailed }
    #expect(outcomes.failures.withLock { $0 } == ["\(CancellationError())"])
  }
}
