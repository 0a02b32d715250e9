import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("A receipt", .blocking)
struct QueueReceiptTests {
  let scene: QueueScene
  var queue: PlainQueue { scene.queue }

  init() throws { scene = try QueueScene() }

  private func receipt(
    _ id: QueueEntryID, _ payload: PropertyListValue, _ status: QueueEntryStatus
  ) -> QueueReceipt? {
    QueueReceipt(id, Batch.Entry(payload: payload), status)
  }

  @Test("reports to a restarted sender its entries, in order, with their outcomes", .bothEngines)
  func restart() throws {
    let ids = try ["a", "a", "b", "a"].enumerated().map { number, name in
      try queue.sender(name).enqueue(
        PropertyListValue(number), durability: number == 0 ? .durable : .standard,
        keepsReceipt: number != 1)
    }
    let sender = try queue.sender("a")
    #expect(try sender.receipts().map(\.payload) == [0, 3])
    #expect(try sender.receipts().map(\.status) == [.stored, .stored])
    let consumer = try queue.consume()
    try #require(try consumer.next(until: .now)).fail("no paper")
    let others = try (1...3).map { _ in try #require(try consumer.next(until: .now)) }
    #expect(
      try sender.receipts() == [
        receipt(ids[0], 0, .failed(reason: "no paper")),
        receipt(ids[3], 3, .taken),
      ])
    for other in others { try other.acknowledge() }
    #expect(try sender.receipts().map(\.status) == [.failed(reason: "no paper"), .processed])
    for id in ids { try sender.forget(id) }
    #expect(try sender.receipts().isEmpty && sender.outcomes().isEmpty)
    #expect(try scene.count(.receipts) == 0, "\(scene.directory.listing)")
  }

  @Test(
    "is kept for each entry of a file that wants one, until the last of them is cleared",
    .bothEngines)
  func together() throws {
    let ids = try scene.sendTogether([0, 1, 2, 3], from: "a", keeping: [1, 3])
    let sender = try queue.sender("a")
    #expect(try sender.cancel(ids[3]))
    let consumer = try queue.consume()
    try #require(try consumer.next(until: .now)).acknowledge()
    try #require(try consumer.next(until: .now)).acknowledge()
    #expect(
      try sender.receipts() == [
        receipt(ids[1], 1, .processed),
        receipt(ids[3], 3, .cancelled),
      ])
    #expect(try scene.drain(consumer) == [.init("a", 2)])
    try sender.forget(ids[0])
    try sender.forget(ids[1])
    #expect(try sender.receipts().map(\.id) == [ids[3]])
    try sender.forget(ids[3])
    #expect(try sender.receipts().isEmpty)
    #expect(try scene.count(.receipts) == 0, "\(scene.directory.listing)")
  }

  @Test("keeps its record when cleared too early, or by another sender", .bothEngines)
  func early() throws {
    let sender = try queue.sender("a")
    let id = try sender.enqueue(0, keepsReceipt: true)
    try queue.sender("a").forget(id)
    #expect(try sender.receipts().isEmpty)
    #expect(try sender.status(of: id) == .stored)
    try queue.sender("a2").enqueue(1, keepsReceipt: true)
    #expect(try sender.receipts().isEmpty)
    #expect(try scene.drain().map(\.number) == [0, 1])
  }

  @Test(
    "keeps the order of its sender after everything else is gone and the clock was set back",
    .bothEngines)
  func clockSetBack() throws {
    let time = Mutex<UInt64>(2_000)
    let clock: @Sendable () -> UInt64 = { time.withLock { $0 } }
    let queue = PlainQueue(container: self.queue.container, name: "q", clock: clock)
    try queue.sender("a").enqueue(0, keepsReceipt: true)
    #expect(try scene.drain() == [.init("a", 0)])
    time.withLock { $0 = 1_000 }
    try queue.sender("a").enqueue(1, keepsReceipt: true)
    #expect(try queue.sender("a").receipts().map(\.payload) == [0, 1])
  }

  @Test("leaves out unreadable entries, and tolerates planted ones")
  func damaged() throws {
    let sender = try queue.sender("a")
    let ids = try (0..<2).map { try sender.enqueue(PropertyListValue($0), keepsReceipt: true) }
    let together = try scene.sendTogether([2, 3], from: "a", keeping: [2, 3])
    let sent = scene.place + "/sent/"
    try removeFile(sent + ids[0].batch.text)
    try FileDescriptor.open(sent + ids[0].batch.text, [.writeOnly, .create]).writeAll([1, 2])
    try makeDirectory(sent + together[0].batch.text + ".forgotten")
    try FileDescriptor.open(sent + "x", [.writeOnly, .create]).close()
    #expect(try sender.receipts().map(\.payload) == [1, 2, 3])
    try sender.forget(ids[0])
    #expect(try scene.names("sent").count == 4)
    #expect(try scene.drain().count == 4, "the stored entry is another name of the file")
  }

  #if DEBUG
    private final class Taken: Sendable {
      let entry = Mutex<PlainEntry?>(nil)
    }

    // the sender                                consumer
    // asks what is outstanding, before call n
    //                                           takes the entry
    // goes on; it used to look only where the entry had been
    @Test("is not needed to find an entry that is taken at this moment")
    func takenMeanwhile() throws {
      for place in 0..<100 {
        let scene = try QueueScene()
        let sender = try scene.queue.sender("a")
        let id = try sender.enqueue(7)
        let consumer = try scene.queue.consume()
        let taken = Taken()
        let plan = Faults.Plan.acting(before: place) {
          let entry = try consumer.next(until: .now)
          taken.entry.withLock { $0 = entry }
        }
        let found = try Faults.$plan.withValue(plan) { try sender.outstanding() }
        #expect(found.map(\.id) == [id], "before call \(place)")
        guard taken.entry.withLock({ $0 != nil }) else { return }
      }
      Issue.record("more than 100 calls")
    }

    @Test("exists if the entry does and its sender knows; after a kill at any step, never alone")
    func killed() throws {
      try TriedSteps.each(from: 0, by: 1, moreThan: 8) { step in
        let scene = try QueueScene()
        let wasKilled = try scene.participant().dies(of: "die \(step) queue-keep q a 7")
        let receipts = try scene.queue.sender("a").receipts()
        let delivered = try scene.drain().map(\.number)
        #expect(receipts.allSatisfy { $0.payload == 7 && $0.status == .stored })
        #expect(receipts.count <= delivered.count && delivered.count <= 1, "\(step)")
        #expect(wasKilled || receipts.count == 1)
        #expect(try scene.leftovers().isEmpty, "\(step): \(scene.directory.listing)")
        return wasKilled
      }
    }

    @Test(
      "exists or the whole send fails, whichever call the kernel refuses",
      arguments: [
        Errno.noSpace, .notPermitted,
      ])
    func failing(error: Errno) throws {
      try TriedSteps.each(from: 0, by: 1) { step in
        let scene = try QueueScene()
        let sender = try scene.queue.sender("a")
        let plan = Faults.Plan { [step] call, index in
          index == step && (error == .noSpace || call == .linkat) ? .fail(error) : .proceed
        }
        var id: QueueEntryID?
        do {
          id = try Faults.$plan.withValue(plan) { try sender.enqueue(7, keepsReceipt: true) }
        } catch is WormholeError {
          // Then it is not stored at all.
        }
        #expect(try sender.receipts().map(\.id) == (id.map { [$0] } ?? []), "call \(step)")
        #expect(try scene.drain().count == (id == nil ? 0 : 1), "call \(step)")
        #expect(try scene.leftovers().isEmpty, "call \(step): \(scene.directory.listing)")
        return plan.calls > step
      }
    }
  #endif
}
