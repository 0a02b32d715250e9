import Dispatch
import PropertyLists
import Synchronization
import SystemCalls
import TestScopes
import TestSupport
import Testing

@testable import AppGroup

@Suite("The end of an entry", .blocking)
struct QueueEndTests {
  let scene: QueueScene
  var queue: Queue { scene.queue }

  init() throws { scene = try QueueScene() }

  /// Ends that were told.
  private final class Told: Sendable {
    let ends = Mutex<[QueueEndObservation.Ends.Element]>([])
    let failures = Mutex<[AppGroupError]>([])

    func note(_ result: Result<QueueEndObservation.Ends, AppGroupError>) {
      switch result {
      case .success(let more): ends.withLock { $0 += more }
      case .failure(let error): failures.withLock { $0.append(error) }
      }
    }

    var ids: [QueueEntryID] { ends.withLock { $0.map(\.id) } }
    var statuses: [QueueEntryStatus] { ends.withLock { $0.map(\.status) } }
    var hasFailed: Bool { failures.withLock { !$0.isEmpty } }
  }

  @Test("is told at once, to threads and tasks that wait for it, and so is how it stands later")
  func waiting() async throws {
    let sender = try queue.sender("a")
    let ids = try (0..<3).map { try sender.send(PropertyListValue($0)) }
    #expect(try await sender.end(of: ids[0], until: .now) == .stored)
    async let first = sender.end(of: ids[0])
    async let second = Blocking.run { try sender.end(of: ids[1], until: .now + .seconds(30)) }
    let consumer = try await queue.consume()
    // While they wait, or before.
    for _ in 0..<2 {
      try #require(try await consumer.next(until: .now + .seconds(5))).acknowledge()
    }
    #expect(try await first == .processed)
    #expect(try await second == .processed)
    _ = try await consumer.next(until: .now)
    #expect(try await sender.end(of: ids[2], until: .now + .milliseconds(1)) == .taken)
    let waiter = Task { try await sender.end(of: ids[2]) }
    waiter.cancel()
    await #expect(throws: CancellationError.self) { try await waiter.value }
  }

  @Test("reaches an observer once each, whichever it is, in the order of sending")
  func observing() throws {
    let sender = try queue.sender("a")
    let told = Told()
    let early = try sender.send(0, expires: .zero)
    #expect(try scene.drain().isEmpty)
    let batch = try scene.sendTogether([1, 2, 3, 4, 5], from: "a")
    let late = try sender.send(6)
    let observation = sender.observeEnds(of: [early, late] + batch, on: Blocking.queue()) {
      told.note($0)
    }
    try eventually("what had ended before is told") { told.ids == [early] }
    #expect(try sender.cancel(batch[4]))
    try eventually("what is cancelled is told while the rest of its file waits") {
      told.ids.last == batch[4]
    }
    let consumer = try queue.consume()
    let entries = try (1...4).map { _ in try #require(try consumer.next(until: .now)) }
    try entries[1].fail("why not")
    try eventually("a failure is told") { told.ids.last == batch[1] }
    try entries[0].acknowledge()
    try eventually("one of a file that is handled is told") { told.ids.last == batch[0] }
    #expect(try sender.cancel(late))
    try eventually("a cancelled file is told") { told.ids.last == late }
    try entries[2].acknowledge()
    try entries[3].acknowledge()
    try eventually("the last of the file are told") { told.ids.count == 7 }
    #expect(Set(told.ids) == Set([early, late] + batch))
    #expect(told.statuses.last == .processed)
    observation.cancel()
  }

  @Test("is told when another consumer has taken over, and when the queue was removed")
  func replaced() throws {
    let sender = try queue.sender("a")
    let told = Told()
    let ids = try (0..<3).map { try sender.send(PropertyListValue($0)) }
    let observation = sender.observeEnds(of: ids, on: Blocking.queue()) { told.note($0) }
    let first = try queue.consume()
    #expect(try first.next(until: .now)?.payload == 0)
    first.end()
    let second = try queue.consume()
    let again = try #require(try second.next(until: .now))
    #expect(again.isRedelivery)
    try again.acknowledge()
    try eventually("the first is told") { told.ids == [ids[0]] }
    // What is nowhere any more counts as processed.
    try rename(
      scene.place, at: Directory.current, to: scene.directory.path + "/elsewhere",
      at: Directory.current)
    try eventually("all are told") { Set(told.ids) == Set(ids) }
    observation.cancel()
  }

  @Test("of a thousand is told through one set of watches, and none is missed while they are added")
  func many() throws {
    let sender = try queue.sender("a")
    let told = Told()
    let observation = sender.observeEnds(on: Blocking.queue()) { told.note($0) }
    let group = DispatchGroup()
    let queue = queue
    Blocking.queue().async(group: group) {
      do {
        let consumer = try queue.consume()
        for _ in 0..<1_000 { try consumer.next(until: .now + .seconds(30))?.acknowledge() }
      } catch {
        Issue.record(error)
      }
    }
    var ids: [QueueEntryID] = []
    for number in 0..<1_000 {
      ids.append(try sender.send(PropertyListValue(number)))
      observation.add([ids[number]])
    }
    group.wait()
    try eventually("all are told") { told.ids.count == 1_000 }
    #expect(Set(told.ids) == Set(ids))
    #expect(!told.hasFailed)
    observation.cancel()
  }

  @Test("is not told to who has cancelled, and leaves no watches behind")
  func cancelled() throws {
    let sender = try queue.sender("a")
    let told = Told()
    let id = try sender.send(0)
    let target = DispatchQueue(label: "target")
    let observation = sender.observeEnds(of: [id], on: target) { told.note($0) }
    try eventually("it watches") { sender.ends.watches == 4 }
    observation.cancel()
    try eventually("it does not watch any more") { sender.ends.watches == 0 }
    #expect(try scene.drain().count == 1)
    target.sync {}
    #expect(told.ids.isEmpty)
  }
}
