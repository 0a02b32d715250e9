import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("A lease between processes", .blocking)
struct LeaseTests {
  let directory: TemporaryDirectory
  let container: SharedContainer
  var value: PlainValue { container.value("k") }

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    try container.value("k").replace(with: 0)
  }

  private func participant() throws -> Participant { try Participant(directory.path) }

  // A                          B
  // add 1, stopped inside
  //                            add 10: takes the lease away, done
  // continues: repeats on 10
  @Test(
    "of a suspended process is taken over, and neither change is lost",
    arguments: Suspension.available)
  func suspended(_ way: Suspension) throws {
    let a = try participant()
    #expect(try a.ask("hold k 1") == "holding")
    let suspended = try Suspended(a, by: way)
    try value.update { $0 = .integer(($0?.int64Value ?? 0) + 10) }
    #expect(try value.read() == 10)
    try suspended.resume()
    #expect(try a.ask("go") == "holding", "its closure runs again, with the latest value")
    #expect(try a.ask("go") == "done")
    #expect(try value.read() == 11, "\(directory.listing)")
    #expect(Litter.entries(of: "k", in: directory) == ["held"], "\(directory.listing)")
  }

  // A                          B
  // add 1 once, stopped
  //                            set 5
  // continues: error, names B
  @Test("that was taken over is an error with the taker, if the change must not be repeated")
  func lostOnce() throws {
    let a = try participant()
    let b = try participant()
    #expect(try a.ask("once k 1") == "holding")
    try a.send(.stop)
    try a.waitUntilStopped()
    #expect(try b.ask("set k 5") == "done")
    try a.send(.continue)
    let answer = try a.ask("go")
    #expect(answer.hasPrefix("error leaseLost"), "\(answer)")
    #expect(answer.contains("process \(b.processID) (participant)"), "\(answer)")
    #expect(try value.read() == 5)
  }

  @Test("of a killed process is free at once, and its entries are swept")
  func killed() throws {
    let a = try participant()
    #expect(try a.ask("hold k 1") == "holding")
    try a.send(.kill)
    #expect(try a.wait() == .killed(signal: 9))
    try value.update(until: .now + .milliseconds(500)) { $0 = 7 }
    #expect(try value.read() == 7)
    #expect(Litter.entries(of: "k", in: directory) == ["held"], "\(directory.listing)")
  }

  @Test("that is busy past the deadline is an error with the holder; readers never wait")
  func timesOut() throws {
    let a = try participant()
    #expect(try a.ask("long k 1") == "holding")
    let error = #expect(throws: WormholeError.self) {
      try value.replace(with: 5, until: .now + .milliseconds(100))
    }
    #expect(error?.code == .timedOut)
    #expect(error?.holder?.processID == a.processID)
    #expect(error?.holder?.program == "participant")
    #expect(error?.holder?.state == .running)
    let holding = try Regex(
      "with its lease held for [0-9]+\\.[0-9] s by process \(a.processID) \\(participant\\), which is running"
    )
    #expect(error?.reason.contains(holding) == true, "\(error?.reason ?? "")")
    let immediate = #expect(throws: WormholeError.self) {
      try value.replace(with: 5, until: .now - .seconds(1))
    }
    #expect(immediate?.code == .timedOut, "a deadline in the past means only if it is free")
    #expect(try value.read() == 0)
    #expect(try a.ask("go") == "done")
    try value.replace(with: 9, until: .now - .seconds(1))
    #expect(try value.read() == 9)
  }

  /// "stopped, for 4.0 s" read as the time of the stop.
  @Test(
    "has a holder of which three things are said: since when it holds it, who it is, and its state",
    arguments: [
      (LeaseHolder.State.stopped, "which is stopped"), (.running, "which is running"),
      (.gone, "which has ended"), (.unknown, "whose state cannot be seen from here"),
    ])
  func described(state: LeaseHolder.State, clause: String) {
    let holder = { (held: Duration?) in
      LeaseHolder(processID: 4711, program: "daemon", host: "h2", state: state, held: held)
    }
    #expect(
      holder(.seconds(4)).holding == "held for 4.0 s by process 4711 (daemon) on h2, \(clause)")
    #expect(holder(nil).holding == "held by process 4711 (daemon) on h2, \(clause)")
    #expect("\(holder(.seconds(4)))" == "process 4711 (daemon) on h2, \(clause)")
  }

  @Test("is taken over from a running process, too, when its term has passed")
  func termPasses() throws {
    let a = try participant()
    #expect(try a.ask("hold k 1") == "holding")
    try value.replace(with: 5)
    #expect(try a.ask("go") == "holding")
    #expect(try a.ask("go") == "done")
    #expect(try value.read() == 6)
  }

  @Test("is waited for by tasks without blocking the cooperative pool")
  func tasksDoNotBlock() async throws {
    let a = try participant()
    #expect(try a.ask("long k 1") == "holding")
    let value = value
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<16 {
        group.addTask {
          try await value.update(until: .now + .seconds(60)) {
            $0 = .integer(($0?.int64Value ?? 0) + 1)
          }
        }
      }
      // More waiters than the pool has threads: if they blocked it, this task would run too late.
      group.addTask {
        for _ in 0..<100 { await Task.yield() }
        let answer = try a.ask("go")
        #expect(answer == "done")
      }
      try await group.waitForAll()
    }
    #expect(try await value.read() == 17)
  }

  @Test("is no longer awaited by a cancelled task, and nothing is changed")
  func cancelledTask() async throws {
    let a = try participant()
    #expect(try a.ask("long k 1") == "holding")
    let value = value
    let waiting = Task { try await value.replace(with: 5) }
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    #expect(try a.ask("go") == "done")
    #expect(try await value.read() == 1)
  }

  @Test("whose holder locked it and stopped before its declaration is taken over as well")
  func undeclared() throws {
    let a = try participant()
    let calls = try a.calls(of: "add k 0")
    // The declaration is preceded by one of these calls; stop before each.
    for place in 0..<calls {
      let stopped = try participant()
      try stopped.tell("stop \(place) add k 1")
      try stopped.waitUntilStopped()
      let before = try #require(try value.read()?.int64Value)
      try value.update { $0 = .integer(($0?.int64Value ?? 0) + 10) }
      #expect(try value.read() == .integer(before + 10), "stopped before call \(place)")
      try stopped.send(.continue)
      #expect(try stopped.answer() == "done")
      // Published before it was stopped, or repeated afterwards: once in any case.
      let sum = try #require(try value.read()?.int64Value)
      #expect(sum % 10 == Int64(place + 1) % 10, "call \(place): \(sum) \(directory.listing)")
    }
    #expect(try value.read() == .integer(Int64(calls) * 11))
    #expect(Litter.entries(of: "k", in: directory) == ["held"], "\(directory.listing)")
  }

  @Test(
    "leaves the value old or new and whole when its holder is killed at any step",
    arguments: ["add k 1", "set k 1", "durable k 1", "remove k"])
  func killedAtEveryStep(command: String) throws {
    let calls = try participant().calls(of: command)
    #expect(calls > 5)
    let new: PropertyListValue? = command == "remove k" ? nil : 1
    var wasPublished = false
    for place in stride(from: TriedSteps.first, to: calls, by: TriedSteps.stride) {
      try value.replace(with: 0)
      let victim = try participant()
      // It may be done with fewer calls.
      guard try victim.dies(of: "die \(place) \(command)") else { continue }
      let now = try value.read()
      #expect(now == 0 || now == new, "killed before call \(place): \(directory.listing)")
      if now == new { wasPublished = true }
      #expect(!wasPublished || now == new, "published at call \(place), and undone later?")
      try value.replace(with: 5, durability: .durable, until: .now + .seconds(5))
      #expect(try value.read() == 5)
      #expect(
        Litter.entries(of: "k", in: directory) == ["held"],
        "killed before call \(place): \(directory.listing)")
    }
  }

  // A                  B                                  this process
  // hold, stopped
  //                    add 10: killed at step n of
  //                    taking the lease away
  //                                                       add 100
  // continues, add 1
  @Test("is taken over by any process if the one that began to is killed at any step")
  func breakerKilledAtEveryStep() throws {
    var place = 8
    var survived = false
    while !survived {
      try value.replace(with: 0)
      let a = try participant()
      let b = try participant()
      #expect(try a.ask("hold k 1") == "holding")
      try a.send(.stop)
      try a.waitUntilStopped()
      survived = try !b.dies(of: "die \(place) add k 10")
      try value.update { $0 = .integer(($0?.int64Value ?? 0) + 100) }
      try a.send(.continue)
      #expect(try a.ask("go") == "holding")
      #expect(try a.ask("go") == "done")
      let sum = try #require(try value.read()?.int64Value)
      #expect(sum == 101 || sum == 111, "killed before call \(place): \(sum)")
      // Large content is prepared on every file system, which sweeps what a dead breaker has left.
      try value.replace(
        with: .string(String(repeating: "x", count: PreparedContent.worthwhileBytes)))
      #expect(
        Litter.entries(of: "k", in: directory) == ["held"],
        "killed before call \(place): \(directory.listing)")
      // The waiting part of the takeover repeats calls; every third place reaches each kind.
      place += 3
    }
    #expect(place > 30)
  }

  @Test(
    "works whatever is planted in its directory; foreign entries are put aside, not deleted",
    arguments: [
      "mkdir held/d && echo precious > held/d/file", "mkfifo held/fifo prepared-f",
      "ln -s /etc/passwd held/link; ln -s /etc/passwd prepared-l",
      "mkdir prepared-d broken-d && echo precious > broken-d/file",
      "mkdir -p broken-d/sub && echo precious > broken-d/sub/file", "echo x > broken-file",
      "ln -s /tmp broken-link", "mv held away && touch held",
    ])
  func planted(script: String) throws {
    let unmark = "touch held/first; rm -f held/first held/clean"
    let plant = try ChildProcess(
      "sh", ["-c", "cd '\(directory.path)/values/k/lease' && \(script); \(unmark)"])
    #expect(try plant.wait(until: soon) == .exited(0))
    if script.hasSuffix("touch held") {
      let error = #expect(throws: WormholeError.self) { try value.replace(with: 1) }
      #expect(error?.path == value.path, "an error, neither a hang nor a crash")
      #expect(try value.read() == 0)
    } else {
      try value.replace(with: 1)
      try value.replace(with: 2, durability: .durable)
      #expect(try value.read() == 2)
    }
    if script.contains("sub/file") || script.contains("d/file") && script.contains("held/d") {
      #expect(directory.listing.contains("quarantine/"), "\(directory.listing)")
    }
  }

  @Test("held by a foreign program is respected, and taken over when the program is stopped")
  func foreignLock() throws {
    let pipe = try makePipe()
    let script = """
      import fcntl, os, sys
      held = os.open(sys.argv[1], os.O_RDONLY)
      fcntl.flock(held, fcntl.LOCK_EX)
      print("locked", flush=True)
      import time; time.sleep(60)
      """
    let foreign = try ChildProcess(
      "python3", ["-c", script, directory.path + "/values/k/lease/held"],
      output: pipe.write.rawValue)
    #expect(try waitReadable([pipe.read.rawValue], until: soon) == [true])
    let error = #expect(throws: WormholeError.self) {
      try value.replace(with: 1, until: .now + .milliseconds(120))
    }
    #expect(error?.holder?.processID == foreign.processID, "\(String(describing: error))")
    try foreign.send(.stop)
    try value.replace(with: 1)
    #expect(try value.read() == 1)
    try foreign.send(.kill)
    _ = try foreign.wait(until: soon)
  }
}
