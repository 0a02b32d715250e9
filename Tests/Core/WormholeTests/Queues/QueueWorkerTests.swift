import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("A queue with workers", .blocking)
struct QueueWorkerTests {
  let scene: QueueScene

  init() throws { scene = try QueueScene() }

  private func send(_ numbers: Range<Int>, from sender: String = "a") throws {
    let sender = try scene.queue.sender(sender)
    for number in numbers { try sender.enqueue(PropertyListValue(number)) }
  }

  private func isDone() throws -> Bool {
    do {
      return try scene.leftovers().isEmpty
    } catch let error as Errno where error == .noSuchFile {
      // A worker is taking over a directory that was listed just now.
      return false
    }
  }

  @Test("gives each entry to one of them, and an acknowledged one to nobody else", .bothEngines)
  func shares() throws {
    try send(0..<4)
    let first = try scene.queue.work()
    let second = try scene.queue.work()
    let one = try #require(try first.next(until: .now))
    let two = try #require(try second.next(until: .now))
    #expect([one, two].map { QueueScene.Delivered($0) } == [.init("a", 0), .init("a", 1)])
    try one.acknowledge()
    #expect(try !first.isIdle())
    #expect(try scene.drain(first) == [.init("a", 2), .init("a", 3)])
    #expect(try first.isIdle() && !second.isIdle())
    // Its entry stays its own as long as it lives.
    #expect(try first.next(until: .now) == nil)
    second.close()
    #expect(
      try first.next(until: soon).map(QueueScene.Delivered.init)
        == .init("a", 1, again: true))
    #expect(throws: WormholeError.self) { try two.acknowledge() }
  }

  @Test(
    "gives the entries of a killed one to the others, marked, and wakes them for that",
    .bothEngines, .waiting)
  func killed() async throws {
    try send(0..<2)
    let victim = try scene.participant()
    #expect(try victim.ask("queue-join q") == "done")
    #expect(try victim.ask("queue-next q") == "a 0")
    let worker = try await scene.queue.work()
    #expect(try scene.drain(worker) == [.init("a", 1)])
    let entry = Task { try await worker.next() }
    try eventually("it waits") { worker.isAwaited }
    try victim.end()
    let taken = try await entry.value
    #expect(QueueScene.Delivered(taken) == .init("a", 0, again: true))
    try taken.acknowledge()
    worker.close()
    #expect(try scene.leftovers() == [], "\(scene.directory.listing)")
  }

  @Test(
    "gives the entries of a stopped one to the others; it has lost them, and joins again",
    .bothEngines, .waiting)
  func stopped() throws {
    try send(0..<1)
    let late = try scene.participant()
    #expect(try late.ask("queue-join q") == "done")
    #expect(try late.ask("queue-next q") == "a 0")
    try late.send(.stop)
    try late.waitUntilStopped()
    let worker = try scene.queue.work()
    let taken = try #require(try worker.next(until: soon))
    #expect(QueueScene.Delivered(taken) == .init("a", 0, again: true))
    try late.send(.continue)
    let loss = try late.ask("queue-acknowledge q")
    #expect(loss.hasPrefix("error leaseLost"))
    #expect(loss.contains("process \(Program.processID)"), "who has it now: \(loss)")
    try taken.acknowledge()
    try send(1..<2)
    #expect(try late.ask("queue-next q 30") == "a 1")
    #expect(try late.ask("queue-acknowledge q") == "done")
    #expect(try scene.drain(worker).isEmpty)
  }

  /// ```
  /// a, b alternately: stopped; the other gets what it had; continued
  /// ```
  @Test(
    "loses no entry and no worker when one after the other is stopped and continued",
    .bothEngines, .waiting)
  func stoppedAlternately() throws {
    var workers = try (0..<2).map { _ in try scene.participant() }
    for worker in workers { #expect(try worker.ask("queue-join q") == "done") }
    for number in 0..<6 {
      try send(number..<(number + 1))
      let (late, other) = (workers[0], workers[1])
      #expect(try late.ask("queue-next q 30") == "a \(number)")
      try late.send(.stop)
      try late.waitUntilStopped()
      #expect(try other.ask("queue-next q 30") == "a \(number) again")
      #expect(try other.ask("queue-acknowledge q") == "done")
      try late.send(.continue)
      #expect(try late.ask("queue-acknowledge q").hasPrefix("error leaseLost"))
      workers.reverse()
    }
    #expect(try scene.queue.outstanding().isEmpty)
  }

  @Test(
    "waits with them for a consumer that has it alone, which later shares with them", .bothEngines)
  func consumer() throws {
    let alone = try scene.queue.consume()
    let error = #expect(throws: WormholeError.self) { try scene.queue.work(until: .now) }
    #expect(error?.code == .timedOut && error?.holder?.processID == Program.processID)
    alone.close()
    let worker = try scene.queue.work()
    try send(0..<2)
    let entry = try #require(try worker.next(until: .now))
    let consumer = try scene.queue.consume(until: .now)
    #expect(try scene.drain(consumer) == [.init("a", 1)])
    worker.close()
    #expect(
      try consumer.next(until: soon).map(QueueScene.Delivered.init)
        == .init("a", 0, again: true))
    #expect(throws: WormholeError.self) { try entry.acknowledge() }
  }

  @Test("keeps its directories while a worker is there, even if nothing is in it")
  func sweeping() throws {
    let worker = try scene.queue.work()
    #expect(try !scene.queue.removeParts())
    #expect(try scene.names("pending") == [], "\(scene.directory.listing)")
    try send(0..<1)
    #expect(try scene.drain(worker) == [.init("a", 0)])
    worker.close()
    #expect(try scene.queue.removeParts())
  }

  @Test("keeps pauses and deliveries when a released entry goes to another worker", .bothEngines)
  func released() throws {
    try send(0..<1)
    let first = try scene.queue.work(attempts: 2)
    let second = try scene.queue.work(attempts: 2)
    let entry = try #require(try first.next(until: .now))
    try entry.retry(after: .milliseconds(1), because: "again")
    first.close()
    let again = try #require(try second.next(until: soon))
    #expect(again.attempt == 2)
    try again.retry(after: .zero, because: "again")
    #expect(try second.next(until: .now) == nil)
    #expect(try scene.queue.failures().map(\.payload) == [0])
  }

  @Test("reports the status of what any of them has taken, and its end")
  func status() async throws {
    let sender = try scene.queue.sender("a")
    var ids: [QueueEntryID] = []
    var workers: [PlainConsumer] = []
    var entries: [PlainEntry] = []
    for number in 0..<3 {
      ids.append(try await sender.enqueue(PropertyListValue(number)))
      let worker = try await scene.queue.work()
      entries.append(try #require(try await worker.next(until: .now)))
      workers.append(worker)
    }
    #expect(try ids.map { try sender.status(of: $0) } == [.taken, .taken, .taken])
    let last = ids[2]
    let end = Task { try await sender.finalStatus(of: last) }
    try eventually("it waits") { sender.ends.watches > 2 }
    try entries[2].acknowledge()
    #expect(try await end.value == .processed)
    #expect(try sender.status(of: ids[1]) == .taken)
    for worker in workers { worker.close() }
  }

  #if DEBUG
    @Test(
      "loses nothing when one is killed before any step of taking over from another",
      arguments: TriedSteps.shares)
    func killedTakingOver(share: Int) throws {
      try TriedSteps.each(of: share, moreThan: 60) { step in
        let scene = try QueueScene()
        try scene.sendTogether([0, 1], from: "a")
        try scene.queue.sender("b").enqueue(0)
        let dead = try scene.participant()
        #expect(try dead.ask("queue-join q") == "done")
        #expect(try dead.ask("queue-next q") == "a 0")
        #expect(try dead.ask("queue-acknowledge q") == "done")
        try dead.end()
        let (handled, wasKilled) = try scene.kill(before: step, of: "queue-share")
        let worker = try scene.queue.work()
        let again = try scene.drain(worker)
        worker.close()
        checkDeliveries(handled + again, of: ["a": [1], "b": [0]], "killed before call \(step)")
        #expect(try scene.leftovers().isEmpty, "\(step): \(scene.directory.listing)")
        return wasKilled
      }
    }
  #endif

  // JOBS=20000 sets the number.
  @Test("has each job done when two of four are killed and one is stopped; repeats are marked")
  func jobs() throws {
    let jobs = Program.environment("JOBS").flatMap { Int($0) } ?? 1_000
    try send(0..<jobs)
    let workers = try (0..<4).map { _ in try scene.participant() }
    for worker in workers { try worker.tell("queue-share q \(scene.handledLog) 60") }
    func reach(_ part: Double) throws {
      try eventually("\(part) of the jobs are done", within: .seconds(100)) {
        try Double(scene.logged(scene.handledLog).count) >= Double(jobs) * part
      }
    }
    try reach(0.1)
    try workers[0].end()
    try workers[1].send(.stop)
    try reach(0.4)
    try workers[2].end()
    try reach(0.7)
    try workers[1].send(.continue)
    try eventually("all jobs are done", within: .seconds(100)) { try isDone() }
    // An optimized build would release, and so kill, them earlier.
    withExtendedLifetime(workers) {}
    let handled = try scene.handled
    // The stopped one may have had an entry in its hands: it finds out when it acknowledges it.
    let first = handled.filter { !$0.isRedelivery }.map(\.number)
    #expect(first.count == Set(first).count, "one came twice, unmarked")
    #expect(Set(handled.map(\.number)) == Set(0..<jobs))
    let repeats = handled.count - jobs
    #expect(repeats <= 3, "one for each that was killed or stopped")
    print("\(jobs) jobs, \(repeats) of them repeated")
  }
  @Test("has no directory of a dead worker any more when the entries in it have ended")
  func directoriesOfDeadWorkers() throws {
    try send(0..<4)
    let worker = try scene.queue.work()
    for _ in 0..<2 {
      let other = try scene.participant()
      #expect(try other.ask("queue-join q") == "done")
      #expect(try other.ask("queue-next q") != "nothing")
      try other.end()
    }
    var numbers: Set<Int64?> = []
    for _ in 0..<4 {
      let entry = try #require(try worker.next(until: soon))
      numbers.insert(entry.payload.int64Value)
      try entry.acknowledge()
    }
    #expect(numbers == [0, 1, 2, 3])
    #expect(try scene.names("taken").count == 1, "\(scene.directory.listing)")
    worker.close()
  }

  @Test(
    "lists many waiting entries again only after a while, though others arrive that may go first")
  func listings() throws {
    let names = (1...100).compactMap { EntryFile("18ebe7648dfe\(1_000 + $0)-a-1-76.plist") }
    #expect(names.count == 100)
    let arrivals = Arrivals()
    var waiting = WaitingEntries(clock: { 0 }, arrivals)
    var lists = 0
    let list: () -> [EntryFile] = {
      pauseThread(.milliseconds(100))
      lists += 1
      return names
    }
    #expect(try waiting.next(listing: list) == names[0])
    arrivals.noteEverything()
    #expect(try waiting.next(listing: list) == names[0])
    // Eight times as long as the listing took.
    #expect(lists == 1)
    try eventually("it lists again") { try waiting.next(listing: list) == names[0] && lists == 2 }
  }

  @Test(
    "is taken from whatever is planted in its consumers' directories",
    arguments: [
      "outcome-1", "making-1", "making-2/d", "18ebe7648dfe10a5-wormhole-1-76.plist.done",
    ])
  func planted(_ name: String) throws {
    try send(0..<1)
    let first = try scene.queue.work()
    #expect(try scene.drain(first) == [.init("a", 0)])
    first.close()
    // A directory that no consumer has.
    let names = try scene.names("taken")
    let free = scene.place + "/taken/" + (names.first ?? "free")
    if names.isEmpty { try makeDirectory(free) }
    let parts = name.split(separator: "/").map(String.init)
    if name == "making-1" {
      try FileDescriptor.open(free + "/" + name, [.writeOnly, .create]).close()
    } else {
      for count in 1...parts.count {
        try makeDirectory(free + "/" + parts.prefix(count).joined(separator: "/"))
      }
    }
    try makeDirectory(
      FileName(bytes: Array((scene.place + "/taken/").utf8) + [0x61, 0xFF]), at: Directory.current)
    try send(1..<2)
    let worker = try scene.queue.work()
    #expect(try scene.drain(worker) == [.init("a", 1)])
    worker.close()
  }

  #if DEBUG
    @Test("joins with as many calls beside thirty workers as beside three")
    func costOfJoining() throws {
      try send(0..<1)
      var workers: [PlainConsumer] = []
      var counts: [Int] = []
      for number in [3, 30] {
        while workers.count < number { workers.append(try scene.queue.work()) }
        // A join that a busy machine delays looks once more, so the cost is the least of some.
        var joins = try (0..<3).map { _ in try scene.participant().calls(of: "queue-join q") }
        while let first = counts.first, joins.allSatisfy({ $0 > first + 2 }), joins.count < 30 {
          joins.append(try scene.participant().calls(of: "queue-join q"))
        }
        counts.append(joins.min() ?? 0)
      }
      #expect(counts[1] <= counts[0] + 2, "\(counts)")
      for worker in workers { worker.close() }
    }
  #endif

  @Test("is not woken when others join, work and leave: it looks at the next one only")
  func rest() throws {
    try send(0..<1)
    let first = try scene.participant()
    #expect(try first.ask("queue-join q") == "done")
    #expect(try first.ask("queue-next q") == "a 0")
    #expect(try first.ask("queue-acknowledge q") == "done")
    let idle = [first] + (try (0..<2).map { _ in try scene.participant() })
    for other in idle.dropFirst() { #expect(try other.ask("queue-join q") == "done") }
    for worker in idle { #expect(try worker.ask("queue-next q") == "nothing") }
    let before = try idle.map(switches)
    for _ in 0..<30 {
      let workers = try (0..<4).map { _ in try scene.queue.work() }
      for worker in workers { worker.close() }
    }
    // The ids of workers begin with that of their process, so all that join are between the same two of the
    // idle ones. Which two depends on the ids that the kernel gave. The one before them looks at them.
    let counts = zip(try idle.map(switches), before).map { $0 - $1 }.sorted()
    // If each that joins told all others, each of these would have more than 200.
    #expect(counts[1] < 100, "\(counts)")
    print("120 workers joined and left: the idle ones had \(counts) context switches")
  }

  /// Returns how often the threads of a process have waited.
  private func switches(_ process: Participant) throws -> Int {
    let tasks = "/proc/\(process.processID)/task"
    return try FileDescriptor.open(tasks, [.readOnly, .directory]).entries().reduce(0) {
      sum, task in
      // The thread has ended.
      let path = tasks + "/" + task.name.text + "/status"
      let count = try? procField("voluntary_ctxt_switches:", of: path, radix: 10)
      return sum + Int(count.flatMap(\.self) ?? 0)
    }
  }

  #if DEBUG
    @Test("delivers what it has taken over, even if a call fails while it looks into that")
    func failingTakeover() throws {
      var place = 0
      while true {
        let scene = try QueueScene()
        try scene.queue.sender("a").enqueue(0)
        let victim = try scene.participant()
        #expect(try victim.ask("queue-join q") == "done")
        #expect(try victim.ask("queue-next q") == "a 0")
        let worker = try scene.queue.work()
        #expect(try worker.next(until: .now) == nil)
        try victim.end()
        let failing = Faults.Plan { [place] _, index in
          index == place ? .fail(.tooManyOpenFiles) : .proceed
        }
        var entry = Result { try Faults.$plan.withValue(failing) { try worker.next(until: soon) } }
        if case .failure = entry { entry = Result { try worker.next(until: soon) } }
        #expect(try entry.get()?.payload == 0, "call \(place) failed")
        worker.close()
        guard failing.calls > place else { break }
        place += 1
      }
      #expect(place > 5)
    }
  #endif
}
