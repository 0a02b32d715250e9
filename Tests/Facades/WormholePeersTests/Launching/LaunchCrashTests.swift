import FoundationEssentials
import Testing
import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

/// A few steps of each call by default; all of them with EVERY_STEP set.
@Suite("Starting a peer, whatever happens to the launcher,", .blocking)
struct LaunchCrashTests {
  /// Returns the steps to try out of a number of calls: all, or some at random.
  private func places(_ command: String) throws -> [Int] {
    let scene = try LaunchScene()
    try scene.register("active")
    let calls = try #require(Int(try scene.participant().ask("calls \(command)")))
    #expect(calls > 50)
    guard !TriedSteps.isThorough else { return Array(0..<calls) }
    var generator = TestSeed.next("LAUNCH_SEED").generator
    return (0..<12).map { _ in Int.random(in: 0..<calls, using: &generator) }
  }

  /// At most one more program was started, which finds the name in use, and ends.
  private func expectOne(_ scene: LaunchScene, _ what: String) throws {
    try eventually("one runs, and it is active: \(what): \(scene.directory.listing)") {
      try scene.active().count == 1 && scene.running() == scene.active()
    }
    #expect(try (1...2).contains(scene.started()), "\(what): \(scene.directory.listing)")
  }

  @Test("has one active program if the launcher is killed before any of its system calls")
  func killed() throws {
    for step in try places("begin p request") {
      let scene = try LaunchScene()
      try scene.register("active")
      let victim = try scene.participant()
      try victim.tell("die \(step) begin p request")
      // A step that it does not reach is as good.
      if try victim.hasAnswer() { try victim.end() } else { _ = try victim.wait() }
      #expect(try scene.launch(), "killed before call \(step): \(scene.directory.listing)")
      try expectOne(scene, "killed before call \(step)")
    }
  }

  @Test("has one active program if the launcher is stopped before any of its calls, and continued")
  func stopped() throws {
    for step in try places("begin p request") {
      let scene = try LaunchScene()
      try scene.register("active")
      let victim = try scene.participant()
      try victim.tell("stop \(step) begin p request")
      if try victim.hasAnswer() { _ = try victim.answer() }
      #expect(try scene.launch(), "stopped before call \(step): \(scene.directory.listing)")
      try victim.send(.continue)
      #expect(try victim.ask("begin p request") != "")
      try victim.end()
      try expectOne(scene, "stopped before call \(step)")
    }
  }

  @Test("ends a second program at once, and the one who started it finds the peer active")
  func second() throws {
    let scene = try LaunchScene()
    try scene.register("patient", for: [.request, .queuedWork])
    #expect(try Launcher.launch("p", for: .queuedWork, in: scene.container, until: nil))
    try eventually("it counts itself") { try scene.started() == 1 }
    // The state that a launcher leaves if it dies after the start.
    let dead = ProcessIdentity(
      processID: 1, startTicks: .max, namespace: ProcessIdentity.current.namespace)
    let book = LaunchBook("p", scene.container)
    try book.change { state in
      let late = LaunchState.Start(
        nonce: "a", uptime: bootTimeNanoseconds(), process: dead, isProgram: false)
      state.begin(late, at: .now())
    }
    let asker = try scene.participant()
    try asker.tell("launch p")
    try eventually("another one counts itself") { try scene.started() == 2 }
    try scene.container.value("go").replace(with: true)
    #expect(try asker.answer() == "true")
    try eventually("one of them is active, and the other has ended") {
      try scene.active().count == 1 && scene.running() == scene.active()
    }
  }

  @Test("works despite a state that is damaged, hostile or from before a restart of the machine")
  func damaged() throws {
    let scene = try LaunchScene()
    let value = scene.container.own.value(PeerNames.launching("p"))
    try scene.register("active", budget: 100)
    let dates: [Double] = [0, -1e300, 1e300]
    for date in dates {
      try value.replace(with: [
        "day": .date(.init(timeIntervalSince1970: date)), "starts": 3, "dayUptime": -1,
        "start": [
          "nonce": "../../../x", "launcher": ["pid": 1, "started": 1, "namespace": 1],
          "uptime": 1, "process": ["pid": -1, "started": "x", "namespace": 0],
        ],
      ])
      #expect(try scene.launch())
      try scene.killActive()
    }
    for bytes in [[], Array("garbage".utf8)] {
      let file = try FileDescriptor.open(value.path, [.writeOnly, .truncate])
      try file.writeAll(bytes)
      try file.close()
      #expect(try scene.launch())
      try scene.killActive()
    }
    #expect(try scene.started() == dates.count + 2)
    #expect(try scene.container.report().leftovers.isEmpty)
  }
}
