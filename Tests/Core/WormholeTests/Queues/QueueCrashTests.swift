import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("A queue, whatever happens to its processes,", .blocking)
struct QueueCrashTests {
  @Test(
    "loses nothing and reorders nothing when its sender is killed before any of its steps",
    arguments: TriedSteps.shares)
  func senderKilled(share: Int) throws {
    try TriedSteps.each(of: share, moreThan: 15) { step in
      let scene = try QueueScene()
      let log = scene.directory.path + "/sent"
      let wasKilled = try scene.participant().dies(of: "die \(step) queue-send q a 0 2 \(log)")
      let stored = try scene.logged(log).count
      try scene.queue.sender("a").enqueue(9)
      let delivered = try scene.drain()
      // One may have been stored without its sender knowing.
      #expect(delivered.last == .init("a", 9), "\(step): \(delivered)")
      let count = delivered.count - 1
      #expect((stored...(stored + 1)).contains(count), "\(step): \(delivered)")
      checkDeliveries(delivered, of: ["a": Array(0..<count) + [9]], "killed before call \(step)")
      #expect(try scene.leftovers().isEmpty, "\(step): \(scene.directory.listing)")
      return wasKilled
    }
  }

  @Test(
    "loses nothing and reorders nothing when its consumer is killed before any of its steps",
    arguments: TriedSteps.shares)
  func consumerKilled(share: Int) throws {
    try TriedSteps.each(of: share, moreThan: 40) { step in
      let scene = try QueueScene()
      try scene.sendTogether([0, 1], from: "a")
      try scene.queue.sender("b").enqueue(0)
      try scene.queue.sender("a").enqueue(2, expires: .zero)
      try scene.queue.sender("a").enqueue(3)
      let (handled, wasKilled) = try scene.kill(before: step, of: "queue-work")
      let again = try scene.drain()
      checkDeliveries(
        handled + again, of: ["a": [0, 1, 3], "b": [0]], "killed before call \(step)")
      #expect(again.count(where: { !$0.isRedelivery }) + handled.count >= 4 - 2)
      #expect(try scene.leftovers().isEmpty, "\(step): \(scene.directory.listing)")
      #expect(try scene.queue.sender("a").outcomes().map(\.status) == [.expired])
      return wasKilled
    }
  }

  @Test(
    "has only one consumer, before whichever step another was stopped and later continued",
    arguments: TriedSteps.shares)
  func consumerStopped(share: Int) throws {
    let first = try QueueScene()
    let entering = try first.participant().calls(of: "queue-consume q")
    // From the last steps of becoming the consumer on.
    try TriedSteps.each(of: share, after: entering - 12, moreThan: entering + 10) { step in
      let scene = try QueueScene()
      try scene.sendTogether([0, 1], from: "a")
      try scene.sendTogether([2], from: "a")
      let late = try scene.participant()
      guard try late.stops(in: "stop \(step) queue-work q \(scene.handledLog)") else {
        return false
      }
      let handled = try scene.handled
      let consumer = try scene.queue.consume()
      let again = try scene.drain(consumer)
      checkDeliveries(handled + again, of: ["a": [0, 1, 2]], "stopped before call \(step)")
      // Its further actions do no harm.
      try scene.sendTogether([3, 4], from: "a")
      try late.send(.continue)
      let result = try late.answer()
      let last = try scene.handled
      #expect(last.count <= handled.count + 1, "it was handling that one: \(last)")
      #expect(last.allSatisfy { $0.number < 3 }, "stopped before call \(step): \(result)")
      #expect(
        try scene.drain(consumer) == [.init("a", 3), .init("a", 4)],
        "stopped before call \(step): \(result), \(scene.directory.listing)")
      consumer.close()
      return true
    }
  }

  @Test(
    "says that a consumer has lost an entry only if the next one gets it, wherever its end was stopped",
    arguments: ["queue-acknowledge q", "queue-fail q", "queue-fail q kept"], [1, 2])
  func endStopped(end: String, together: Int) throws {
    var answers: Set<String> = []
    var lateRecords = 0
    try TriedSteps.each(from: 0, by: 1) { step in
      let scene = try QueueScene()
      try scene.sendTogether(Array(0..<together), from: "a")
      let late = try scene.participant()
      #expect(try late.ask("queue-consume q") == "done")
      #expect(try late.ask("queue-next q") == "a 0")
      guard try late.stops(in: "stop \(step) \(end)") else { return false }
      let consumer = try scene.queue.consume()
      let again = try scene.drain(consumer).map(\.number)
      try late.send(.continue)
      let answer = try String(late.answer().prefix(15))
      answers.insert(answer)
      // Of several entries, the record of those that are processed was open already.
      let isLate = again.first == 0 && answer == "done"
      if isLate, end.contains("acknowledge"), together > 1 {
        lateRecords += 1
      } else {
        #expect(
          answer == (again.first == 0 ? "error leaseLost" : "done"),
          "stopped before call \(step): \(again), \(scene.directory.listing)")
      }
      #expect(again.suffix(together - 1) == Array(1..<together)[...])
      #expect(try scene.leftovers().isEmpty, "\(step): \(scene.directory.listing)")
      return true
    }
    #expect(answers.contains("error leaseLost") && lateRecords <= 1)
    // A processed entry that is alone ends with its first step.
    #expect(answers.contains("done") || end.contains("acknowledge"))
  }

  @Test(
    "has ended for a consumer that is replaced after its last entry, before the batch is removed")
  func replacedAtEnd() throws {
    let scene = try QueueScene()
    try scene.sendTogether([0, 1], from: "a")
    let first = try scene.queue.consume()
    let batch = try #require(try first.next(until: .now)).batch
    // As two threads do that settle the last two entries: neither finds its own to be the last.
    for index in 0...1 {
      try batch.store.settle(
        Settlement(
          id: QueueEntryID(batch: batch.name, index: index), entry: batch.entries[index],
          status: .processed, isKept: false, isLast: false, isFinal: false, hasNotes: true),
        until: nil)
    }
    let taken = "\(scene.place)/taken/"
    try rename(
      taken + batch.consumer, at: Directory.current, to: taken + "consumer-next",
      at: Directory.current)
    try batch.store.finish(hasNotes: true, until: nil)
    first.close()
    #expect(try scene.drain().isEmpty)
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }

  @Test("gets no second consumer beside the first from one that has lost the role while it began")
  func lostRole() throws {
    let scene = try QueueScene()
    let first = try scene.queue.consume()
    let taken = try scene.names("taken")
    // In the place of a registration that somebody has overtaken.
    let other = try scene.queue.container.presence("other").enterExclusively(until: soon)
    let terms = DeliveryTerms(OpenQueue(scene.queue))
    let error = #expect(throws: WormholeError.self) {
      _ = try DirectoryConsumer(terms, as: .alone(other))
    }
    #expect(error?.code == .leaseLost)
    #expect(try scene.names("taken") == taken)
    try scene.queue.sender("a").enqueue(7)
    #expect(try scene.drain(first) == [.init("a", 7)])
  }

  @Test(
    "replaces a consumer that is suspended, whose late acknowledgement does no harm",
    arguments: Suspension.available)
  func replaced(_ way: Suspension) throws {
    let scene = try QueueScene()
    try scene.sendTogether([0, 1], from: "a")
    let late = try scene.participant()
    #expect(try late.ask("queue-consume q") == "done")
    #expect(try late.ask("queue-next q") == "a 0")
    #expect(throws: WormholeError.self) { try scene.queue.consume(until: .now) }
    let suspended = try Suspended(late, by: way)
    let consumer = try scene.queue.consume()
    let first = try #require(try consumer.next(until: .now))
    #expect(first.isRedelivery && first.payload == 0)
    try suspended.resume()
    #expect(try late.ask("queue-acknowledge q").hasPrefix("error leaseLost"))
    #expect(try late.ask("queue-fail q").hasPrefix("error leaseLost"))
    #expect(
      try late.ask("queue-next q") == "nothing",
      "entries in its memory are not delivered any more")
    #expect(try scene.queue.sender("a").status(of: first.id) == .taken)
    try first.acknowledge()
    #expect(try scene.queue.sender("a").status(of: first.id) == .processed)
    #expect(try scene.drain(consumer) == [.init("a", 1)])
    // It joins again when its turn comes.
    try late.tell("queue-next q 30")
    try scene.queue.sender("a").enqueue(2)
    consumer.close()
    #expect(try late.answer() == "a 2")
  }

  @Test(
    "delivers or cancels, never both, before whichever step the canceller was stopped",
    arguments: [[7], [7, 8]])
  func cancelStopped(numbers: [Int]) throws {
    var results: Set<String> = []
    try TriedSteps.each { step in
      let scene = try QueueScene()
      let id = try scene.sendTogether(numbers, from: "a")[0]
      let late = try scene.participant()
      guard try late.stops(in: "stop \(step) queue-cancel q \(id)") else { return false }
      let delivered = try scene.drain().map(\.number)
      let status = try scene.queue.sender("a").status(of: id)
      try late.send(.continue)
      let result = try late.answer()
      results.insert(result)
      #expect(result == "\(!delivered.contains(7))", "\(step): \(delivered)")
      #expect(status == (delivered.contains(7) ? .processed : .cancelled), "\(step)")
      #expect(try scene.queue.sender("a").status(of: id) == status, "\(step)")
      #expect(delivered.contains(8) == numbers.contains(8), "\(step): \(delivered)")
      #expect(try scene.drain().isEmpty, "\(step): \(scene.directory.listing)")
      return true
    }
    #expect(results == ["true", "false"])
  }

  @Test("restores nothing when two cancel in one file, and one of them was stopped")
  func twoCancel() throws {
    try TriedSteps.each(moreThan: 10) { step in
      let scene = try QueueScene()
      let ids = try scene.sendTogether([0, 1, 2], from: "a")
      let late = try scene.participant()
      guard try late.stops(in: "stop \(step) queue-cancel q \(ids[0])") else { return false }
      #expect(try scene.queue.sender("a").cancel(ids[1]))
      try late.send(.continue)
      #expect(try late.answer() == "true")
      #expect(try scene.drain() == [.init("a", 2)], "stopped before call \(step)")
      return true
    }
  }
}
