import GroupDefaults
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite("Defaults that several processes share", .blocking, .bothEngines)
struct SharingTests {
  let scene: DefaultsScene

  init() throws { scene = try DefaultsScene() }

  @Test("keep 400 of 400 keys that 4 processes set at the same time, 100 each")
  func merging() throws {
    let count = TestEngine.current.times(100)
    let others = try (0..<4).map { _ in try scene.participant() }
    for (index, other) in others.enumerated() {
      try other.tell("defaults-fill p\(index)- \(count)")
    }
    for other in others { #expect(try other.answer() == "done") }
    let expected = (0..<4).flatMap { process in (0..<count).map { ("p\(process)-\($0)", $0) } }
    let stored = try #require(try scene.defaults.storedValues())
    #expect(stored.count == 4 * count)
    for (key, index) in expected { #expect(stored[key] == .integer(Int64(index)), "\(key)") }
  }

  // other             | this process
  // ------------------+------------------------------
  //                   | reads: what it knows is old
  // sets, and returns |
  //                   | reads what the other has set
  @Test("are read as another process's last write left them, without any call")
  func freshness() throws {
    let other = try scene.participant()
    scene.defaults.set(0, forKey: "k")
    for number in 1...20 {
      #expect(scene.defaults.integer(forKey: "k") == number - 1)
      #expect(try other.ask("defaults-set k \(number)") == "done")
      #expect(scene.defaults.integer(forKey: "k") == number)
    }
    #expect(try other.ask("defaults-remove k") == "true")
    #expect(scene.defaults.object(forKey: "k") == nil)
    scene.defaults.set("from here", forKey: "k")
    #expect(try other.ask("defaults-get k") == "\"from here\"")
  }

  // killed                  | stopped                 | others
  // ------------------------+-------------------------+------------------
  //                         | in the middle of adding |
  //                         | stopped                 |
  //                         |                         | tally 60 times
  // tallies; is killed somewhere
  //                         | goes on: adds           |
  @Test("lose no update, although one process is stopped and one is killed in the middle")
  func updates() throws {
    let stopped = try scene.participant()
    #expect(try stopped.ask("defaults-hold stopped 5") == "holding")
    try stopped.send(.stop)
    try stopped.waitUntilStopped()

    let killed = try scene.participant()
    let others = try (0..<3).map { _ in try scene.participant() }
    for (index, other) in others.enumerated() { try other.tell("defaults-tally other\(index) 20") }
    try killed.tell("defaults-tally killed 100000")
    for _ in 0..<10 { #expect(try killed.answer() == "one") }
    try killed.end()
    for other in others {
      for _ in 0..<20 { #expect(try other.answer() == "one") }
      #expect(try other.answer() == "done")
    }
    try stopped.send(.continue)
    try stopped.tell("go on")
    // Its update begins again, because its lease was taken over; and once more if it begins before this process
    // knows that its session on etcd has ended.
    #expect(try stopped.answer() == "holding")
    let answer = try stopped.ask("go on")
    #expect(try answer == "done" || answer == "holding" && stopped.ask("go on") == "done")

    let stored = try #require(try scene.defaults.storedValues())
    func count(_ key: String) -> Int { stored[key]?.intValue ?? 0 }
    for index in 0..<3 { #expect(count("other\(index)") == 20) }
    #expect(count("killed") >= 10 && count("stopped") == 5)
    #expect(count("total") == 60 + count("killed"))
  }

  @Test(
    "wait for another process's change until their deadline, and then name the process",
    .onlyDirectories("on etcd nobody waits for a change"))
  func deadline() throws {
    let other = try scene.participant()
    #expect(try other.ask("defaults-hold k 1") == "holding")
    let error = #expect(throws: WormholeError.self) {
      try scene.defaults.write(2, forKey: "l", until: .now)
    }
    #expect(error?.code == .timedOut && error?.holder?.processID == other.processID)
    #expect(scene.defaults.object(forKey: "l") == nil, "a read never waits")
    #expect(try other.ask("go on") == "done")
  }

  @Test("are those of the new file when the container is replaced")
  func replaced() throws {
    scene.defaults.set(1, forKey: "k")
    let value = scene.container.own.value("defaults")
    try value.remove()
    #expect(scene.defaults.object(forKey: "k") == nil)
    // Written in XML, as by a foreign program.
    try value.replace(
      withBytes: Array("<plist version=\"1.0\"><dict><key>k</key><true/></dict></plist>".utf8))
    #expect(scene.defaults.bool(forKey: "k"))
    scene.defaults.set(2, forKey: "l")
    #expect(try scene.defaults.storedValues() == ["k": true, "l": 2])
  }

  #if DEBUG
    @Test(
      "cost one system call per read, and the file is read only after a write",
      .onlyDirectories("it counts calls"))
    func calls() throws {
      let defaults = scene.defaults
      for index in 0..<5 { defaults.set(index, forKey: "k\(index)") }
      #expect(defaults.integer(forKey: "k1") == 1)
      func calls(expecting value: Int) -> Int {
        let plan = Faults.Plan { _, _ in .proceed }
        let found = Faults.$plan.withValue(plan) { defaults.integer(forKey: "k1") }
        #expect(found == value)
        return plan.calls
      }
      // One of them may include the check of the container's path, which happens once a second.
      let counts = (0..<3).map { _ in calls(expecting: 1) }
      #expect(counts.min() == 1, "\(counts)")
      #expect(try scene.participant().ask("defaults-set k1 7") == "done")
      let (first, second) = (calls(expecting: 7), calls(expecting: 7))
      #expect(first > 2 && second <= 2)
    }
  #endif
}
