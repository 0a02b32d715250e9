import Dispatch
import GroupDefaults
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite("Changes of defaults", .blocking, .bothEngines)
struct ObservingTests {
  let scene: DefaultsScene

  init() throws { scene = try DefaultsScene() }

  /// The calls of a handler, in order.
  final class Heard: Sendable {
    private let changes = Mutex<[DefaultsChange]>([])

    func add(_ change: DefaultsChange) { changes.withLock { $0.append(change) } }

    var publishers: [Int32?] { changes.withLock { $0 }.map { $0.publisher?.processID } }

    /// Each as "key: old → new", with "own" at the end for own changes.
    var lines: [String] {
      changes.withLock { $0 }.map { change in
        let old = change.oldValue.map { "\($0)" } ?? "nil"
        let new = change.newValue.map { "\($0)" } ?? "nil"
        return "\(change.key): \(old) → \(new)" + (change.isOwn ? " own" : "")
      }
    }

    func wait(for lines: [String]) throws {
      do {
        try eventually("the reports are \(lines)") { self.lines == lines }
      } catch {
        Issue.record("the reports were \(self.lines)")
        throw error
      }
    }
  }

  private func observe(
    _ defaults: GroupDefaults, key: String? = nil, startsWithCurrent: Bool = false
  ) throws -> (Heard, ObservationToken) {
    let heard = Heard()
    let observation = try defaults.observe(
      key: key, startsWithCurrent: startsWithCurrent, on: DispatchQueue(label: "heard"), heard.add)
    return (heard, observation)
  }

  @Test(
    "are reported with the old and the new value and their origin, across processes and objects")
  func whose() throws {
    let (heard, observation) = try observe(scene.defaults)
    let other = try scene.participant()
    let sibling = GroupDefaults(in: scene.container)
    scene.defaults.set(1, forKey: "k")
    try heard.wait(for: ["k: nil → 1 own"])
    #expect(try other.ask("defaults-add k 4") == "done")
    try heard.wait(for: ["k: nil → 1 own", "k: 1 → 5"])
    sibling.set(2, forKey: "k")
    try heard.wait(for: ["k: nil → 1 own", "k: 1 → 5", "k: 5 → 2"])
    scene.defaults.removeObject(forKey: "k")
    try heard.wait(for: ["k: nil → 1 own", "k: 1 → 5", "k: 5 → 2", "k: 2 → nil own"])
    // The value that this object wrote once, now by another process.
    #expect(try other.ask("defaults-set k 1") == "done")
    try heard.wait(
      for: ["k: nil → 1 own", "k: 1 → 5", "k: 5 → 2", "k: 2 → nil own", "k: nil → 1"])
    observation.cancel()
  }

  @Test("name the process that made them, and nobody where several did")
  func publishers() throws {
    let observers = DispatchQueue(label: "heard")
    let heard = Heard()
    let observation = try scene.defaults.observe(on: observers, heard.add)
    let (a, b) = (try scene.participant(), try scene.participant())
    #expect(try a.ask("defaults-set k 1") == "done")
    try heard.wait(for: ["k: nil → 1"])
    #expect(heard.publishers == [a.processID])
    // Two changes of one process, and one of each, while the observer is busy.
    try observers.sync { () throws in
      #expect(try b.ask("defaults-set k 2") == "done")
      #expect(try b.ask("defaults-set l 2") == "done")
    }
    try heard.wait(for: ["k: nil → 1", "k: 1 → 2", "l: nil → 2"])
    #expect(heard.publishers == [a.processID, b.processID, b.processID])
    try observers.sync { () throws in
      #expect(try a.ask("defaults-set k 3") == "done")
      #expect(try b.ask("defaults-set l 3") == "done")
    }
    try heard.wait(for: ["k: nil → 1", "k: 1 → 2", "l: nil → 2", "k: 2 → 3", "l: 2 → 3"])
    #expect(heard.publishers.suffix(2) == [nil, nil])
    observation.cancel()
  }

  @Test("of one key are reported alone; dots and a leading @ are ordinary characters")
  func keys() throws {
    let names = ["a.b.c", "@sum", "@", ".", "é", ""]
    let observers = try names.map { try observe(scene.defaults, key: $0) }
    let other = try scene.participant()
    #expect(try other.ask("defaults-fill x 3") == "done")
    for (index, name) in names.enumerated() { scene.defaults.set(index, forKey: name) }
    for (index, name) in names.enumerated() {
      try observers[index].0.wait(for: ["\(name): nil → \(index) own"])
    }
    #expect(try other.ask("defaults-set @sum 7") == "done")
    try observers[1].0.wait(for: ["@sum: nil → 1 own", "@sum: 1 → 7"])
    for (_, observation) in observers { observation.cancel() }
  }

  // this object       | other        | observer's queue
  // ------------------+--------------+------------------
  //                   |              | held
  // sets a            |              |
  //                   | sets b, c    |
  // sets c            |              |
  //                   | sets d       |
  // sets d            |              |
  //                   | sets d, e    |
  //                   |              | goes on
  @Test("that arrive as one are reported key by key, each as its last writer's")
  func merged() throws {
    let heard = Heard()
    let queue = DispatchQueue(label: "held")
    let observation = try scene.defaults.observe(on: queue, heard.add)
    queue.sync {}
    let gate = DispatchSemaphore(value: 0)
    queue.async { gate.wait() }
    let other = try scene.participant()
    scene.defaults.set(1, forKey: "a")
    #expect(try other.ask("defaults-set b 2") == "done")
    #expect(try other.ask("defaults-set c 2") == "done")
    scene.defaults.set(3, forKey: "c")
    #expect(try other.ask("defaults-set d 2") == "done")
    scene.defaults.set(3, forKey: "d")
    #expect(try other.ask("defaults-set d 4") == "done")
    #expect(try other.ask("defaults-set e 4") == "done")
    gate.signal()
    try heard.wait(
      for: ["a: nil → 1 own", "b: nil → 2", "c: nil → 3 own", "d: nil → 4", "e: nil → 4"])
    observation.cancel()
  }

  @Test("end with the last state after any burst, and never go backwards")
  func burst() throws {
    let (heard, observation) = try observe(scene.defaults, key: "total")
    let others = try (0..<3).map { _ in try scene.participant() }
    for (index, other) in others.enumerated() { try other.tell("defaults-tally p\(index) 40") }
    for _ in 0..<40 {
      try scene.defaults.update(forKey: "total") { $0 = .integer(($0?.int64Value ?? 0) + 1) }
    }
    try eventually("the last state is reported") {
      heard.lines.last.map { $0.contains("→ 160") } ?? false
    }
    withExtendedLifetime(others) {}
    let totals = heard.lines.compactMap { line in
      Int(line.split(separator: " ").dropLast(line.hasSuffix("own") ? 1 : 0).last ?? "")
    }
    #expect(totals == totals.sorted() && Set(totals).count == totals.count)
    observation.cancel()
  }

  @Test("begin with the current values on request")
  func current() throws {
    scene.defaults.set(1, forKey: "k")
    let (heard, observation) = try observe(scene.defaults, startsWithCurrent: true)
    try heard.wait(for: ["k: nil → 1"])
    let (quiet, other) = try observe(scene.defaults)
    scene.defaults.set(2, forKey: "l")
    try quiet.wait(for: ["l: nil → 2 own"])
    observation.cancel()
    other.cancel()
  }

  @Test("are reported to a task, too", .timeLimit(.minutes(1)))
  func sequence() async throws {
    let changes = try scene.defaults.changes(forKey: "k")
    scene.defaults.set(0, forKey: "unheard")
    var iterator = changes.makeAsyncIterator()
    for number in 1...3 {
      try await scene.defaults.write(.integer(Int64(number)), forKey: "k")
      let change = await iterator.next()
      #expect(change?.newValue == .integer(Int64(number)) && change?.isOwn == true)
    }
    let other = try scene.participant()
    #expect(try other.ask("defaults-set k 9") == "done")
    let change = await iterator.next()
    #expect(change?.oldValue == 3 && change?.newValue == 9 && change?.isOwn == false)
    let task = Task { [scene] in
      for await _ in try scene.defaults.changes() {}
      return true
    }
    task.cancel()
    #expect(try await task.value)
  }

  @Test("are not reported after the handler has cancelled, not even those of the same look")
  func cancelledInside() throws {
    let heard = Heard()
    let queue = DispatchQueue(label: "cancelled")
    let observation = Mutex<ObservationToken?>(nil)
    let made = try scene.defaults.observe(on: queue) { change in
      heard.add(change)
      observation.withLock { $0 }?.cancel()
    }
    observation.withLock { $0 = made }
    try scene.defaults.update { contents in
      for key in ["a", "b", "c"] { contents[key] = 1 }
    }
    try heard.wait(for: ["a: nil → 1 own"])
    scene.defaults.set(2, forKey: "d")
    queue.sync {}
    #expect(heard.lines.count == 1)
    observation.withLock { $0 = nil }
  }

  @Test("of a damaged suite are reported when it can be read again")
  func damage() throws {
    scene.defaults.set(1, forKey: "k")
    let (heard, observation) = try observe(scene.defaults)
    try scene.container.own.value("defaults").replace(withBytes: Array("garbage".utf8))
    try eventually("the damage is reported") { !scene.reported().isEmpty }
    #expect(heard.lines == [])
    _ = try scene.putAside()
    scene.defaults.set(2, forKey: "k")
    try heard.wait(until: "→ 2 own")
    observation.cancel()
  }
}

extension ObservingTests.Heard {
  fileprivate func wait(until end: String) throws {
    try eventually("the last report is \(end)") { lines.last?.hasSuffix(end) ?? false }
  }
}
