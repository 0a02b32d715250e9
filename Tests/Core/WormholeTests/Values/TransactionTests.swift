import Dispatch
import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeInspection

@Suite("Several values in one step", .blocking, .bothEngines)
struct TransactionTests {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let queue = DispatchQueue(label: "test")

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  /// Four values: "a" and "d" are changed, "b" is new, "c" is removed, "e" only read.
  private func begin() throws {
    try container.value("a").replace(with: 1)
    try container.value("c").replace(with: 1)
    try container.value("d").replace(with: .string(longText(100_000)))
    try container.value("d").replace(with: 1)
    try container.value("e").replace(with: 1)
  }
  /// Which way of changing them is tried with kills: both of them with EVERY_STEP.
  private static let verbs =
    TriedSteps.isThorough
    ? ["together", "durable-together"]
    : [TriedSteps.first % 2 == 0 ? "together" : "durable-together"]
  private static let names = ["a", "b", "c", "d", "e"]
  private static let change = "d,a,e=,c-,b"
  private static let before: [Int64?] = [1, nil, 1, 1, 1]
  private static let after: [Int64?] = [3, 2, nil, 3, 1]

  /// The values, each read by itself.
  private func state(_ names: [String] = names) throws -> [Int64?] {
    try names.map { try container.value($0).read()?.int64Value }
  }

  private func versions() throws -> [Version?] {
    try Self.names.map { try container.value($0).version() }
  }

  /// What a transaction leaves in the container that nobody needs.
  func litter() throws -> [String] {
    guard TestEngine.current == .directory else { return [] }
    let left = try ContainerRoot.entries(
      Transaction.directory, at: container.root.handle().descriptor.rawValue)
    return (left ?? []).map(\.name.text)
      + (try Self.names.filter { try hasLease($0) }).flatMap {
        Litter.entries(of: $0, in: directory)
      }
      .filter { $0 != "held" }
  }

  private func hasLease(_ name: String, _ entry: String = "") throws -> Bool {
    try exists("\(directory.path)/values/\(name)/lease/\(entry)", at: Directory.current)
  }

  @Test(
    "writes all of them before the first wait for the disk, so that the waits overlap",
    .onlyDirectories("etcd has one request"))
  func overlappingWaits() throws {
    #if DEBUG
      try begin()
      let calls = Heard<SystemCall>()
      let plan = Faults.Plan { call, _ in
        calls.add(call)
        return .proceed
      }
      try Faults.$plan.withValue(plan) {
        try container.update(["a", "e"]) { values in
          values["a"] = 2
          values["e"] = 2
        }
      }
      let disk = calls.all.indices.filter { calls.all[$0] == .syncFileRange }
      // Two contents and two notes: four beginnings, and then four waits, or more for an older content.
      #expect(disk.count >= 8)
      #expect(try #require(calls.all.lastIndex(of: .write)) < disk[4], "\(calls.all)")
    #endif
  }

  @Test("replaces, creates, removes and keeps; leaves nothing else behind")
  func changes() async throws {
    try begin()
    let kept = try container.value("e").version()
    let result = try await container.update(["d", "a", "c", "b", "e", "a"]) { values in
      #expect(values == ["a": 1, "c": 1, "d": 1, "e": 1])
      values["a"] = 3
      values["b"] = 2
      values["c"] = nil
      values["d"] = 3
      return "done"
    }
    #expect(result == "done")
    #expect(try state() == Self.after)
    #expect(try container.value("e").version() == kept)
    // An older version must not stand in for one that is published later, after a loss of power.
    let standIn = "kept-" + ProcessIdentity.boot
    #expect(
      try TestEngine.current == .etcd
        || ["a", "b", "c", "d", "e"].map { try hasLease($0, standIn) }
          == [false, false, false, false, true]
    )
    #expect(try litter() == [], "\(directory.listing)")
    #expect(try await container.read(Self.names) == ["a": 3, "b": 2, "d": 3, "e": 1])
  }

  @Test("changes nothing if the closure fails, changes nothing, or sets a value that is not named")
  func nothing() throws {
    try begin()
    let versions = try versions()
    struct Failure: Error {}
    #expect(throws: Failure.self) {
      try container.update(["a", "b"]) { values in
        values["a"] = 5
        throw Failure()
      }
    }
    try container.update(["a", "b"], durability: .durable) { $0["a"] = 1 }
    let error = #expect(throws: WormholeError.self) {
      try container.update(["a", "b"]) { $0 = ["a": 5, "other": 5] }
    }
    #expect(error?.code == .unsupportedValue)
    #expect("\(try #require(error))".contains("\"other\""))
    #expect(try self.versions() == versions)
    try container.update([]) { #expect($0.isEmpty) }
    #expect(try litter() == [], "\(directory.listing)")
  }

  @Test("is visible to observers of each value, once")
  func observed() async throws {
    try begin()
    let seen = Heard<String>()
    let tokens = try Self.names.map { name in
      try container.value(name).observe(on: queue) { snapshot in
        seen.add("\(name) \(snapshot.isAbsent ? "none" : "\(snapshot.version != nil)")")
      }
    }
    try await container.update(Self.names) { values in
      values["a"] = 3
      values["b"] = 2
      values["c"] = nil
    }
    try eventually("all are reported") { seen.all.count >= 3 }
    #expect(Set(seen.all) == ["a true", "b true", "c none"])
    withExtendedLifetime(tokens) {}
  }

  #if DEBUG
    @Test(
      "is all or nothing for each reader when its writer is killed before any step; the next one ends it",
      .onlyDirectories("the steps are system calls"),
      arguments: TriedSteps.shares, Self.verbs)
    func killed(share: Int, verb: String) throws {
      var wasVisible = false
      try TriedSteps.each(of: share, moreThan: 100) { step in
        let scene = try TransactionTests()
        try scene.begin()
        let victim = try Participant(scene.directory.path)
        let wasKilled = try victim.dies(of: "die \(step) \(verb) \(Self.change) 2")
        // Nobody has changed anything since.
        let state = try scene.state()
        #expect(
          state == Self.before || state == Self.after,
          "killed before call \(step): \(scene.directory.listing)")
        #expect(try scene.state(Self.names.reversed()) == state.reversed(), "call \(step)")
        wasVisible = wasVisible || wasKilled && state == Self.after
        let versions = try scene.versions()
        try scene.check(state, versions, step)
        if !wasKilled {
          #expect(state == Self.after)
          return false
        }
        return true
      }
      #expect(wasVisible)
    }

    /// Some are changed by another process, the others are swept.
    private func check(_ state: [Int64?], _ versions: [Version?], _ step: Int) throws {
      try container.update(["a"]) { values in
        #expect(values["a"]?.int64Value == state[0], "call \(step)")
      }
      try container.value("b").update { #expect($0?.int64Value == state[1], "call \(step)") }
      #expect(try self.versions() == versions, "call \(step): settled as it was seen")
      _ = try container.sweep()
      #expect(try self.state() == state, "call \(step): \(directory.listing)")
      #expect(try container.report().leftovers.isEmpty, "call \(step): \(directory.listing)")
      try container.update(Self.names) { values in
        for name in Self.names { values[name] = 7 }
      }
      #expect(try self.state() == [7, 7, 7, 7, 7])
      #expect(try litter() == [], "call \(step): \(directory.listing)")
    }

    @Test(
      "blocks nobody when its writer is stopped before any step; later it is done once, or again",
      .onlyDirectories("the steps are system calls"),
      arguments: TriedSteps.shares, Self.verbs)
    func stopped(share: Int, verb: String) throws {
      try TriedSteps.each(of: share, moreThan: 60) { step in
        let scene = try TransactionTests()
        for name in ["a", "b"] { try scene.container.value(name).replace(with: 1) }
        let late = try Participant(scene.directory.path)
        let isDone = try !late.stops(in: "stop \(step) \(verb) a,b 2")
        let found = try scene.state(["a", "b"])
        #expect(found == [1, 1] || found == [3, 3], "stopped before call \(step)")
        // Each of these takes a lease over.
        try scene.container.value("b").update { $0 = .integer(($0?.int64Value ?? 0) + 10) }
        #expect(try scene.state(["a", "b"]) == [found[0], (found[0] ?? 0) + 10], "call \(step)")
        try scene.container.update(["a", "b"]) { values in
          for name in ["a", "b"] {
            values[name] = .integer((values[name]?.int64Value ?? 0) + 100)
          }
        }
        try late.send(.continue)
        #expect(try late.answer() == "done")
        #expect(
          try scene.state(["a", "b"]) == [103, 113], "call \(step): \(scene.directory.listing)")
        _ = try scene.container.sweep()
        #expect(try scene.container.report().leftovers.isEmpty, "call \(step)")
        return !isDone
      }
    }

    @Test(
      "is seen by a reader that has opened the old file when another process publishes the new one",
      .onlyDirectories("it opens the file"))
    func settledWhileReading() throws {
      for name in ["a", "b"] { try container.value(name).replace(with: 1) }
      // The third rename commits, and then the disk fails.
      let renames = Atomic(0)
      let failing = Faults.Plan { name, _ in
        let count = renames.load(ordering: .relaxed)
        if name == .renameat { renames.store(count + 1, ordering: .relaxed) }
        return count < 3 || name == .close ? .proceed : .fail(.inputOutput)
      }
      try Faults.$plan.withValue(failing) {
        try container.update(["a", "b"]) { ($0["a"], $0["b"]) = (3, 3) }
      }
      #expect(try state(["b"]) == [3])
      // Before it looks for the note.
      let value = container.value("a")
      let opens = Atomic(0)
      let settling = Faults.Plan { name, _ in
        if name == .openat2, opens.wrappingAdd(1, ordering: .relaxed).newValue == 2 {
          let settled = Result { try Faults.$plan.withValue(nil) { try value.update { _ in } } }
          #expect(throws: Never.self) { try settled.get() }
        }
        return .proceed
      }
      #expect(try Faults.$plan.withValue(settling) { try value.read() } == 3)
      #expect(opens.load(ordering: .relaxed) > 1)
      try container.value("b").update { _ in }
      #expect(try litter() == [], "\(directory.listing)")
    }

    @Test(
      "fails with a sentence and changes nothing when a call finds no space",
      .onlyDirectories("the calls are the kernel's"), arguments: 0..<3)
    func fullDisk(share: Int) throws {
      var call = share
      while true {
        let scene = try TransactionTests()
        try scene.begin()
        let failing = call
        let plan = Faults.Plan { name, index in
          index == failing && name != .close ? .fail(.noSpace) : .proceed
        }
        let names = Self.names
        let result = Result {
          try Faults.$plan.withValue(plan) {
            try scene.container.update(names) { values in
              (values["a"], values["b"], values["c"], values["d"]) = (3, 2, nil, 3)
            }
          }
        }
        switch result {
        case .success: #expect(try scene.state() == Self.after, "call \(call)")
        case .failure(let error):
          #expect((error as? WormholeError)?.code == .noSpace, "call \(call): \(error)")
          #expect(try scene.state() == Self.before, "call \(call): \(scene.directory.listing)")
        }
        try scene.container.update(names) { values in
          for name in names { values[name] = 7 }
        }
        #expect(try scene.state() == [7, 7, 7, 7, 7], "call \(call)")
        if plan.calls <= call { break }
        call += 3
      }
      #expect(call > 60)
    }
  #endif

  #if DEBUG
    @Test(
      "replaces a file of another member of the group, whose mark it can't set",
      .onlyDirectories("it is about the file's owner"))
    func foreignOwner() throws {
      try begin()
      let before = try versions()
      let plan = Faults.Plan { name, _ in name == .fchmod ? .fail(.notPermitted) : .proceed }
      // Also the one on the copy fails here: it is this process's own.
      let copied = Atomic(0)
      let once = Faults.Plan { name, _ in
        guard name == .fchmod, copied.wrappingAdd(1, ordering: .relaxed).newValue % 2 == 1 else {
          return .proceed
        }
        return .fail(.notPermitted)
      }
      #expect(throws: WormholeError.self) {
        try Faults.$plan.withValue(plan) { try container.update(["a", "d"]) { $0["a"] = 5 } }
      }
      #expect(try state() == Self.before)
      try Faults.$plan.withValue(once) {
        try container.update(["a", "d"]) { values in
          #expect(values["a"] == 1)
          (values["a"], values["d"]) = (5, nil)
        }
      }
      #expect(try state(["a", "d"]) == [5, nil])
      #expect(try versions() != before)
      #expect(try litter() == [], "\(directory.listing)")
    }

    @Test(
      "is refused with a sentence where there are no hard links or no permissions",
      .onlyDirectories("it is about file systems"))
    func unsuitable() throws {
      try begin()
      for call in [SystemCall.linkat, .fchmod] {
        let plan = Faults.Plan { name, _ in
          name != call ? .proceed : call == .linkat ? .fail(.notPermitted) : .skip
        }
        let error = #expect(throws: WormholeError.self) {
          try Faults.$plan.withValue(plan) { try container.update(["a", "b"]) { $0["a"] = 5 } }
        }
        #expect("\(try #require(error))".contains("its file system has no "))
        #expect(try state() == Self.before)
        #expect(try litter() == [], "\(directory.listing)")
      }
    }
  #endif

  @Test("a takeover of one lease, even of a value that is only read, undoes it before its commit")
  func takenOver() throws {
    for name in ["a", "b"] { try container.value(name).replace(with: 1) }
    let late = try Participant(directory.path)
    #expect(try late.ask("hold-together a,b= 2") == "holding")
    try late.send(.stop)
    try late.waitUntilStopped()
    try container.value("b").replace(with: 50)
    try late.send(.continue)
    // It begins again, with the new value.
    #expect(try late.ask("") == "holding")
    #expect(try state(["a", "b"]) == [1, 50])
    #expect(try late.ask("") == "done")
    #expect(try state(["a", "b"]) == [3, 50])
  }

  @Test("several processes in any order of names lose nothing, and no reader sees a part")
  func concurrent() throws {
    let names = ["a", "b", "c"]
    for name in names { try container.value(name).replace(with: 100) }
    let orders = ["a,b,c", "c,b,a", "b,a,c"]
    let writers = try orders.map { _ in try Participant(directory.path) }
    var looks = 0
    // Again, where few looks came between the transfers.
    for _ in 0..<11 where looks <= 10 {
      for (writer, order) in zip(writers, orders) { try writer.tell("transfer \(order) 150") }
      try eventually("all have ended", within: .seconds(100)) {
        let values = try container.read(names)
        #expect(values.values.reduce(0) { $0 + ($1.int64Value ?? 0) } == 300)
        looks += 1
        return try writers.allSatisfy { try $0.hasAnswered() }
      }
      for writer in writers { #expect(try writer.answer() == "done") }
    }
    #expect(try state(names).reduce(0) { $0 + ($1 ?? 0) } == 300)
    #expect(looks > 10)
  }
}
