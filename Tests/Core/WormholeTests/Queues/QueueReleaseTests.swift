import Dispatch
import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("An entry that its consumer gives back", .blocking)
struct QueueReleaseTests {
  private let scene: QueueScene
  private var queue: PlainQueue { scene.queue }

  init() throws { scene = try QueueScene() }

  private func next(
    _ consumer: PlainConsumer, until deadline: ContinuousClock.Instant = .now
  ) throws -> PlainEntry { try #require(try consumer.next(until: deadline)) }

  @Test("keeps its deliveries and its pause when the record of its batch is summed up")
  func summedUp() {
    let text = "0\n1\n1 5 9\n0\n0\n"
    #expect(DeliveryLog.reduced(text) == "1\n1 5 9\n0 x3\n")
    #expect(DeliveryLog.reduced(text + "1\n") == "0 x3\n1 x2\n")
    #expect(DeliveryLog.reduced("0 x3\n1\n" + "1 5 9\n") == "0 x3\n1\n1 5 9\n")
    #expect(
      DeliveryLog.reduced("0\n0 -1\n0\n0 5 9 it rains\n0\n") == "0 0 0 it rains\n0 x3\n0 -1\n")
    #expect(DeliveryLog(Array("0 x3\n0\n0 30000\n".utf8)).deliveries(of: 0) == 4)
    let log = DeliveryLog(Array("0 0 0 it rains\n0 x3\n0 -1\n".utf8))
    #expect(log.attempts(of: 0) == 2 && log.reason(0) == "it rains")
    // Planted numbers overflow nothing.
    let planted = "0 -9223372036854775808\n0 x9223372036854775807\n0 -\n0 x\n0 1 2 3 4 5\n"
    #expect(DeliveryLog(Array(planted.utf8)).attempts(of: 0) >= 0)
  }

  @Test(
    "waits alone: later entries of its sender flow on, even past a restart", .bothEngines,
    arguments: [1, 3])
  func flow(together: Int) throws {
    try scene.sendTogether(Array(0..<together), from: "a")
    try queue.sender("a").enqueue(9)
    let consumer = try queue.consume()
    let first = try next(consumer)
    #expect(first.payload == 0 && first.attempt == 1 && !first.isRedelivery)
    try first.retry(after: .seconds(3_600), because: "again")
    // It does not belong to this delivery any more.
    try first.acknowledge()
    try first.fail("late")
    #expect(try queue.sender("a").status(of: first.id) == .taken)
    let rest = (1..<together).map { QueueScene.Delivered("a", $0) } + [.init("a", 9)]
    #expect(try scene.drain(consumer) == rest)
    #expect(try !consumer.isIdle())
    consumer.close()
    #expect(try scene.drain().isEmpty, "its time has not come")
    if TestEngine.current == .directory { #expect(try scene.names("taken").count == 1) }
  }

  @Test(
    "is redelivered when it is due, and a waiting consumer is woken", .bothEngines,
    arguments: [false, true])
  func due(isRestarted: Bool) throws {
    try queue.sender("a").enqueue(0)
    var consumer = try queue.consume()
    try next(consumer).retry(after: .milliseconds(30), because: "again")
    if isRestarted {
      consumer.close()
      consumer = try queue.consume()
    }
    let again = try next(consumer, until: soon)
    #expect(again.payload == 0 && again.attempt == 2 && again.isRedelivery)
    try again.acknowledge()
    #expect(try consumer.isIdle() && scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }

  @Test("is given back whatever is planted in place of its notes", arguments: 0..<4)
  func planted(kind: Int) throws {
    try queue.sender("a").enqueue(0)
    let consumer = try queue.consume()
    let entry = try next(consumer)
    let taken = scene.place + "/taken/" + (try #require(try scene.names("taken").first))
    let note = "\(taken)/\(entry.id.batch.text).deliveries"
    let victim = scene.directory.path + "/victim"
    try FileDescriptor.open(victim, [.writeOnly, .create]).close()
    switch kind {
    case 0: try makeFIFO(FileName(note), at: Directory.current)
    case 1: try link(victim, at: Directory.current, to: note, at: Directory.current)
    case 2: try makeSymbolicLink(FileName(note), at: Directory.current, target: FileName(victim))
    default: try makeDirectory(note)
    }
    try entry.retry(after: .zero, because: "again")
    let again = try next(consumer, until: soon)
    #expect(again.isRedelivery && again.attempt == 2)
    try again.acknowledge()
    consumer.close()
    #expect(try fileStatus(victim).size == 0)
  }

  @Test("by two threads at once is redelivered once")
  func twoThreads() throws {
    let rounds = 100
    for number in 0..<rounds { try queue.sender("a").enqueue(PropertyListValue(number)) }
    let consumer = try queue.consume()
    for _ in 0..<rounds {
      let entry = try next(consumer)
      DispatchQueue.concurrentPerform(iterations: 2) { _ in
        #expect(throws: Never.self) { try entry.retry(after: .zero, because: "again") }
      }
    }
    var delivered = 0
    while let entry = try consumer.next(until: .now) {
      delivered += 1
      try entry.acknowledge()
    }
    #expect(delivered == rounds)
  }

  @Test("is redelivered to a consumer that waits without a thread", .bothEngines)
  func async() async throws {
    try await queue.sender("a").enqueue(0)
    let consumer = try await queue.consume()
    let entry = try #require(try await consumer.next(until: soon))
    async let again = consumer.next(until: soon)
    try await Task.detached { try entry.retry(after: .milliseconds(10), because: "again") }.value
    #expect(try await again?.attempt == 2)
  }

  @Test("never stops its queue, whatever its pause", .bothEngines)
  func fairness() throws {
    for number in 0..<3 { try queue.sender("a").enqueue(.integer(Int64(number))) }
    let consumer = try queue.consume()
    var order: [Int] = []
    while order.count < 8, let entry = try consumer.next(until: .now) {
      order.append(entry.payload.intValue ?? -1)
      if entry.payload == 0 {
        try entry.retry(after: .zero, because: "again")
      } else {
        try entry.acknowledge()
      }
    }
    #expect(order == [0, 0, 1, 0, 2, 0, 0, 0])
  }

  @Test(
    "is delayed no longer than its pause, whatever time the record has",
    arguments: ["99999999999999", "-9223372036854775808", "9223372036854775807"])
  func clock(_ due: String) throws {
    try queue.sender("a").enqueue(0)
    let consumer = try queue.consume()
    try next(consumer).retry(after: .milliseconds(20), because: "again")
    consumer.close()
    let taken = "taken/" + (try #require(try scene.names("taken").first))
    let log = try #require(
      try scene.names(taken).first { $0.hasSuffix(QueueDirectory.deliveriesSuffix) })
    try FileDescriptor.open("\(scene.place)/\(taken)/\(log)", [.writeOnly, .truncate])
      .writeAll(Array("0 20 \(due)\n".utf8))
    let successor = try queue.consume()
    #expect(try next(successor, until: soon).payload == 0)
  }

  // MARK: Counting

  @Test(
    "or that kills its consumer, fails after the allowed number of attempts, and no other does",
    arguments: [1, 3])
  func deadly(together: Int) throws {
    try scene.sendTogether(Array(0..<together), from: "a")
    for _ in 0..<3 {
      let victim = try scene.participant()
      #expect(try victim.ask("queue-consume q") == "done")
      #expect(try victim.ask("queue-next q").hasPrefix("a 0"))
      try victim.end()
    }
    let consumer = try queue.consume(attempts: 3)
    for number in 1..<max(together, 1) {
      let entry = try next(consumer)
      #expect(entry.payload.intValue == number && entry.attempt == 1)
      try entry.acknowledge()
    }
    #expect(try consumer.next(until: .now) == nil)
    let failure = try #require(try queue.failures().first)
    #expect(failure.payload == 0 && failure.reason == "each of 3 attempts ended without a result")
    #expect(try queue.sender("a").status(of: failure.id) == .failed(reason: failure.reason))
    #expect(try consumer.isIdle() && scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }

  @Test("as often as allowed fails, is kept, and can be sent again as a new one", .bothEngines)
  func kept() throws {
    let sender = try queue.sender("a")
    let id = try sender.enqueue(7, keepsReceipt: true)
    let consumer = try queue.consume(attempts: 2)
    try next(consumer).retry(after: .zero, because: "again")
    try next(consumer).retry(after: .zero, because: "again")
    #expect(try consumer.next(until: .now) == nil)
    #expect(try queue.failures().map(\.id) == [id])
    let new = try #require(try queue.retry(id))
    #expect(new != id && new.sender == "a")
    #expect(try queue.failures().isEmpty && queue.retry(id) == nil && !queue.forgetFailure(id))
    let entry = try next(consumer)
    #expect(entry.payload == 7 && entry.attempt == 1 && entry.id == new)
    try entry.fail("again", isKept: true)
    #expect(try queue.failures().map(\.reason) == ["again"])
    #expect(try queue.forgetFailure(new) && queue.failures().isEmpty)
    guard case .failed = try sender.status(of: id) else {
      Issue.record("an outcome never changes")
      return
    }
    try sender.forget(id)
    try sender.forget(new)
    #expect(try scene.leftovers().isEmpty && scene.count(.failed) == 0)
  }

  #if DEBUG
    // It was said not to exist.
    @Test(
      "and failed is sent again although a child that was just forked shares its writer's lock",
      .onlyDirectories("it is about a file's lock"))
    func lockedFailure() throws {
      let consumer = try queue.consume()
      let ids = try (0..<2).map { number in
        let id = try queue.sender("a").enqueue(PropertyListValue(number))
        try next(consumer).fail("no", isKept: true)
        return id
      }
      // What it locks if nobody else does, the failure last.
      let locks = Atomic(0)
      let counting = Faults.Plan { call, _ in
        if call == .flock { locks.wrappingAdd(1, ordering: .relaxed) }
        return .proceed
      }
      #expect(try Faults.$plan.withValue(counting) { try queue.retry(ids[0]) } != nil)
      let child = SharedDescriptor(
        try FileDescriptor.open(
          scene.place + "/" + QueueDirectory.failedPath(ids[1]), .readOnly))
      #expect(try child.descriptor.tryLock(.exclusive))
      let unlocking = Faults.Plan { call, _ in
        guard call == .flock, locks.wrappingSubtract(1, ordering: .relaxed).newValue == -1 else {
          return .proceed
        }
        let end = Result { try Faults.$plan.withValue(nil) { try child.descriptor.unlock() } }
        #expect(throws: Never.self) { try end.get() }
        return .proceed
      }
      #expect(try Faults.$plan.withValue(unlocking) { try queue.retry(ids[1]) } != nil)
      #expect(try next(consumer).payload == 0 && next(consumer).payload == 1)
    }
  #endif

  @Test(
    "too often ends once, kept and reported, if its consumer is killed before any step",
    arguments: TriedSteps.shares, [1, 2])
  func killed(share: Int, together: Int) throws {
    try TriedSteps.each(of: share, moreThan: 40) { step in
      let scene = try QueueScene()
      let ids = try scene.sendTogether(Array(0..<together), from: "a")
      let log = scene.directory.path + "/log"
      let wasKilled = try scene.participant().dies(of: "die \(step) queue-poison q 3 \(log)")
      let consumer = try scene.queue.consume(attempts: 3)
      var others: [Int] = []
      while let entry = try consumer.next(until: .now) {
        if entry.payload == 0 {
          #expect(entry.attempt <= 3)
          try entry.retry(after: .zero, because: "again")
        } else {
          others.append(entry.payload.intValue ?? -1)
          try entry.acknowledge()
        }
      }
      func comment() -> Comment { "before call \(step): \(scene.directory.listing)" }
      #expect(try scene.queue.failures().map(\.payload) == [0], comment())
      guard case .failed = try scene.queue.sender("a").status(of: ids[0]) else {
        Issue.record(comment())
        return false
      }
      let handled = try scene.logged(log)
      #expect(handled.count(where: { $0 == "0" }) <= 3, comment())
      let all = Set(handled.compactMap { Int($0) }.filter { $0 > 0 } + others)
      #expect(all == Set(1..<together), comment())
      #expect(try scene.leftovers().isEmpty, comment())
      return wasKilled
    }
  }

  @Test("and that failed, is sent again once if the process that does so is killed before any step")
  func retryKilled() throws {
    try TriedSteps.each(from: 0) { step in
      let scene = try QueueScene()
      try scene.queue.sender("a").enqueue(7)
      let consumer = try scene.queue.consume()
      try #require(try consumer.next(until: .now)).fail("on purpose", isKept: true)
      let wasKilled = try scene.participant().dies(of: "die \(step) queue-retry q")
      for failure in try scene.queue.failures() {
        #expect(try scene.queue.retry(failure.id) != nil)
      }
      #expect(
        try scene.drain(consumer) == [.init("a", 7)],
        "before call \(step): \(scene.directory.listing)")
      return wasKilled
    }
  }
}

@Suite("Records that a queue keeps for its senders", .blocking)
struct QueueExpiryTests {
  private static let day: UInt64 = 86_400_000_000_000

  private func queue(_ scene: QueueScene, days: UInt64) -> PlainQueue {
    PlainQueue(container: scene.queue.container, name: "q") {
      PlainQueue.nanosecondsSince1970() + days * Self.day
    }
  }

  @Test(
    "are removed a day after the end: receipts of processed entries, and other outcomes",
    .bothEngines)
  func expiry() throws {
    let scene = try QueueScene()
    let sender = try scene.queue.sender("a")
    let processed = try sender.enqueue(0, keepsReceipt: true, receiptTerm: .dayAfterProcessing)
    let failed = try sender.enqueue(1, keepsReceipt: true, receiptTerm: .dayAfterProcessing)
    let noted = try sender.enqueue(2)
    let other = try scene.queue.sender("b").enqueue(
      3, keepsReceipt: true, receiptTerm: .dayAfterProcessing)
    let lasting = try sender.enqueue(4, keepsReceipt: true)
    let waiting = try sender.enqueue(5, keepsReceipt: true, receiptTerm: .dayAfterProcessing)
    let consumer = try scene.queue.consume()
    for _ in 0..<5 {
      let entry = try #require(try consumer.next(until: .now))
      if [failed, noted].contains(entry.id) {
        try entry.fail("no")
      } else {
        try entry.acknowledge()
      }
    }
    // No process sweeps before.
    try queue(scene, days: 0).sender("a").enqueue(6)
    #expect(try scene.count(.receipts) == 5 && sender.outcomes().count == 2)
    // The sender comes by.
    try queue(scene, days: 2).sender("a").enqueue(7)
    #expect(try sender.receipts().map(\.id) == [failed, lasting, waiting])
    #expect(try sender.status(of: processed) == .processed)
    #expect(try sender.status(of: noted) == .processed, "it is unknown by now")
    #expect(try sender.status(of: failed) == .failed(reason: "no"), "kept until it is cleared")
    // A sweep removes the same, for all senders.
    #expect(try scene.queue.sender("b").receipts().map(\.id) == [other])
    #expect(try queue(scene, days: 2).expire().count == 1)
    #expect(try scene.queue.sender("b").receipts().isEmpty)
  }

  @Test("are removed although their entries were sent while the clock was years ahead")
  func clockAhead() throws {
    let scene = try QueueScene()
    let consumer = try scene.queue.consume()
    for days: UInt64 in [2_000, 0] {
      try queue(scene, days: days).sender("a").enqueue(1)
      try #require(try consumer.next(until: .now)).fail("no")
    }
    #expect(try queue(scene, days: 2).expire().count == 2, "\(scene.directory.listing)")
  }

  @Test("are not needed to list waiting or taken entries", .bothEngines)
  func outstanding() throws {
    let scene = try QueueScene()
    let sender = try scene.queue.sender("a")
    let together = try scene.sendTogether([0, 1, 2], from: "a", keeping: [0])
    let alone = try sender.enqueue(3)
    try scene.queue.sender("b").enqueue(4)
    let consumer = try scene.queue.consume()
    for _ in 0..<2 { try #require(try consumer.next(until: .now)).acknowledge() }
    let listed = try sender.outstanding()
    #expect(listed.map(\.id) == [together[0], together[2], alone])
    #expect(listed.map(\.status) == [.processed, .taken, .stored])
    #expect(listed.map(\.payload) == [0, 2, 3])
    #expect(try sender.receipts().map(\.payload) == [0])
  }
}
