import Foundation
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole

/// A name that one holder has until a time, whichever processes act for it.
@Suite("A claim", .blocking, .bothEngines)
struct ClaimTests {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let claim: Claim

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    claim = container.claim("build")
  }

  @Test("belongs to one holder until it is released; each gets a larger number, and keeps it")
  func holders() async throws {
    #expect(try await claim.holder() == nil)
    var last: UInt64 = 0
    for who in ["a", "b", "a"] {
      let fence = try await claim.acquire(as: who, for: .seconds(60))
      #expect(fence.number > last)
      last = fence.number
      for _ in 0..<3 {
        #expect(try await claim.acquire(as: who, for: .seconds(120)).number == fence.number)
      }
      let holder = try #require(try await claim.holder())
      #expect(holder.who == who && holder.fence == last && holder.processID == nil)
      #expect((60...120).contains(holder.until.timeIntervalSinceNow))
      #expect(holder.since < .now && holder.since > .now - 60)
      let error = await #expect(throws: WormholeError.self) { try await claim.acquire(as: "c") }
      #expect(error?.code == .timedOut)
      #expect(error?.reason.hasPrefix("\"\(who)\" has had it since ") == true)
      #expect(try await !claim.release(as: "c"))
      #expect(try await claim.release(as: who))
      #expect(try await !claim.release(as: who))
      #expect(try await claim.holder() == nil)
    }
    for (who, time) in [("", 1), ("a", 0), ("a", -1)] {
      let error = await #expect(throws: WormholeError.self) {
        try await claim.acquire(as: who, for: .seconds(time), until: soon)
      }
      #expect(error?.code == .unsupportedValue)
    }
  }

  @Test("has a larger number for each holder, however little time is between two")
  func rounds() async throws {
    var fences: [Fence] = []
    for round in 0..<60 {
      let fence = try await claim.acquire(as: "\(round)", for: .seconds(60))
      #expect(fence.number > fences.last?.number ?? 0)
      if let last = fences.last {
        let error = await #expect(throws: WormholeError.self) {
          try await container.value("x").update(while: last) { $0 = "late" }
        }
        #expect(error?.code == .leaseLost)
      }
      fences.append(fence)
      #expect(try await claim.release(as: "\(round)"))
    }
    #expect(try container.claims().isEmpty)
  }

  @Test(
    "has a larger number than the last holder, though the clock was set back",
    .onlyDirectories("etcd has revisions"))
  func clock() async throws {
    try await claim.acquire(as: "a")
    let ahead: UInt64 = 1 << 50
    try await container.own.value("claim/build").update { $0?["fence"] = PropertyListValue(ahead) }
    try await claim.release(as: "a")
    #expect(try await claim.acquire(as: "b").number > ahead)
  }

  @Test("belongs to another holder if two texts are equal but their bytes are not")
  func bytes() async throws {
    try await claim.acquire(as: "\u{E9}")
    await #expect(throws: WormholeError.self) { try await claim.acquire(as: "e\u{301}") }
    #expect(try await !claim.release(as: "e\u{301}"))
  }

  @Test("is refused if the process that it names ends during the wait")
  func endedWhileWaiting() async throws {
    try await claim.acquire(as: "a")
    let session = try ChildProcess("sleep", ["0.3"])
    let error = await #expect(throws: WormholeError.self) {
      try await claim.acquire(as: "b", whileRunning: session.processID, until: soon)
    }
    _ = try session.wait(until: soon)
    #expect(error?.reason.contains("no process") == true)
    #expect(try await claim.holder()?.who == "a")
  }

  @Test("is free when its time is over, and goes to one that waits for that")
  func time() async throws {
    let first = try await claim.acquire(as: "a", for: .milliseconds(1_200))
    await #expect(throws: WormholeError.self) {
      try await claim.acquire(as: "b", until: .now + .milliseconds(50))
    }
    let second = try await claim.acquire(as: "b", until: soon)
    #expect(second.number > first.number)
    #expect(try await claim.holder()?.who == "b")
  }

  @Test("goes to one that waits for its release")
  func waits() async throws {
    try await claim.acquire(as: "a")
    async let second = claim.acquire(as: "b", until: soon)
    try await claim.release(as: "a")
    _ = try await second
    #expect(try await claim.holder()?.who == "b")
  }

  @Test("ends with the process that it names, and at no other process with that number")
  func process() async throws {
    let session = try ChildProcess("sleep", ["600"])
    try await claim.acquire(as: "a", whileRunning: session.processID)
    #expect(try await claim.holder()?.processID == session.processID)
    await #expect(throws: WormholeError.self) { try await claim.acquire(as: "b") }
    try session.send(.stop)
    try eventually("it is stopped") { ProcessStatus.of(session.processID)?.isStopped == true }
    await #expect(throws: WormholeError.self) { try await claim.acquire(as: "b") }
    try session.send(.kill)
    _ = try session.wait(until: soon)
    #expect(try await claim.holder() == nil)
    let error = await #expect(throws: WormholeError.self) {
      try await claim.acquire(as: "b", whileRunning: session.processID)
    }
    #expect(error?.reason.contains("no process") == true)
    try await claim.acquire(as: "b", whileRunning: Program.processID)
    // A renewal that names no process keeps it.
    try await claim.acquire(as: "b")
    #expect(try await claim.holder()?.processID == Program.processID)
    // As after another start of the machine.
    try await container.own.value("claim/build").update {
      $0?["start"] = .integer(1)
      $0?["fence"] = 5
    }
    #expect(try await claim.holder() == nil)
    let fence = try await claim.acquire(as: "c")
    #expect(fence.number > 5)
  }

  @Test("guards changes by its number: none is made once another holder has it")
  func fences() async throws {
    let fence = try await claim.acquire(as: "a", for: .seconds(60))
    try await container.value("x").update(while: fence) { $0 = 1 }
    // A renewal changes the value of the claim, and not its number.
    try await claim.acquire(as: "a", for: .seconds(90))
    try await container.value("x").update(while: fence) { $0 = 2 }
    try await container.update(["x", "y"], while: claim.fence(fence.number)) { $0["y"] = $0["x"] }
    let sender = try container.queue("jobs").sender("s")
    try await sender.enqueue(1, while: fence)
    try await claim.release(as: "a")
    for holder in [nil, "b", "a"] {
      if let holder {
        try await claim.acquire(as: holder)
        try await container.value("x").update(while: try #require(try await current())) { $0 = 2 }
      }
      for late in [fence, claim.fence(fence.number + 1_000_000_000_000), claim.fence(0)] {
        let error = await #expect(throws: WormholeError.self) {
          try await container.value("x").update(while: late) { $0 = 3 }
        }
        #expect(error?.code == .leaseLost && error?.description.contains("claim \"build\"") == true)
        await #expect(throws: WormholeError.self) { try await sender.enqueue(3, while: late) }
      }
      if let holder { #expect(try await claim.release(as: holder)) }
    }
    #expect(try await container.read(["x", "y"]) == ["x": 2, "y": 2])
    #expect(try container.queue("jobs").outstanding().count == 1)
  }

  private func current() async throws -> Fence? {
    try await claim.holder().map { claim.fence($0.fence) }
  }

  @Test("goes to one of many that want it at the same time")
  func contention() async throws {
    for round in 0..<5 {
      let won = try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<8 {
          group.addTask {
            do {
              try await claim.acquire(as: "\(round).\(number)")
              return 1
            } catch let error as WormholeError where error.code == .timedOut {
              return 0
            }
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(won == 1)
      let who = try #require(try await claim.holder()).who
      #expect(try await claim.release(as: who))
    }
  }

  @Test("that others have damaged is nobody's")
  func hostile() async throws {
    let value = container.own.value("claim/build")
    let contents: [PropertyListValue] = [
      7, "x", [], ["who": 7], ["who": "a"], ["who": "a", "since": "now"],
    ]
    for content in contents {
      try await value.replace(with: content)
      #expect(try await claim.holder() == nil)
      try await claim.acquire(as: "b")
      #expect(try await claim.holder()?.who == "b")
    }
    for part: (String, PropertyListValue) in [("fence", -1), ("process", 0), ("start", "x")] {
      try await value.update { $0?[part.0] = part.1 }
      #expect(try await claim.holder()?.who == "b")
    }
  }

  @Test("has any name, and all that somebody has are listed")
  func names() async throws {
    let names = ["", "é", "e\u{301}", "a/b", "..", String(repeating: "n", count: 300)]
    for name in names { try await container.claim(name).acquire(as: name + "!") }
    try await container.claim("free").acquire(as: "x")
    try await container.claim("free").release(as: "x")
    let found = try container.claims()
    let expected = names.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
    #expect(found.map { Array($0.claim.name.utf8) } == expected)
    #expect(found.allSatisfy { $0.holder.who == $0.claim.name + "!" })
    #expect(try container.valueIdentifiers() == [])
  }

  @Test("that cannot be read hides no other", .onlyDirectories("it replaces a file"))
  func unreadable() async throws {
    for name in ["a", "b", "c"] { try await container.claim(name).acquire(as: "x") }
    let path = container.own.value("claim/b").path
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    var faults = NameFaults()
    #expect(try container.claims(&faults).map(\.claim.name) == ["a", "c"])
    #expect(faults.all.map(\.path) == [path])
  }
}
