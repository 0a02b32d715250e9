import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

@Suite("A budget of starts", .blocking)
struct LaunchBudgetTests {
  private typealias Moment = LaunchState.Moment
  private static let hour: UInt64 = 3_600 * 1_000_000_000

  private func start() -> LaunchState.Start {
    .init(nonce: "a", uptime: 0, process: .current, isProgram: false)
  }

  @Test("is counted before the start, for all requests, and reports when it is used up")
  func counted() throws {
    let scene = try LaunchScene()
    try scene.register("active", budget: 2)
    #expect(try PeerLaunch.Registry(in: scene.container).remainingLaunches(of: "p") == 2)
    #expect(try scene.launch())
    #expect(try PeerLaunch.Registry(in: scene.container).remainingLaunches(of: "p") == 1)
    try scene.killActive()
    #expect(try scene.participant().ask("launch p") == "true")
    try scene.killActive()
    #expect(try !Launcher.isLaunchable("p", for: .request, in: scene.container))
    let error = try #require(throws: WormholeError.self) { try scene.launch() }
    #expect(error.code == .notLaunched && error.reason.contains("2 times today"), "\(error)")
    #expect(try scene.started() == 2)
    // Registering it again restores nothing; a larger budget does.
    try scene.register("active", budget: 2)
    #expect(try PeerLaunch.Registry(in: scene.container).remainingLaunches(of: "p") == 0)
    try scene.register("active", budget: 3)
    #expect(try scene.launch())
    try scene.register("active", budget: 1)
    #expect(try PeerLaunch.Registry(in: scene.container).remainingLaunches(of: "p") == 0)
  }

  @Test("is full again on the next day, and not when the clock is set back")
  func days() throws {
    var state = LaunchState()
    var now = Moment(day: 20_000, uptime: Self.hour, machine: 1)
    #expect(state.count(at: now) == 0)
    state.begin(start(), at: now)
    state.begin(start(), at: now)
    #expect(state.count(at: now) == 2)
    now.day = 19_999
    #expect(state.count(at: now) == 2, "set back")
    state.begin(start(), at: now)
    #expect(state.count(at: now) == 3)
    now.day = 20_000
    #expect(state.count(at: now) == 3, "put right")
    now.day = 20_001
    #expect(state.count(at: now) == 0)
    state.begin(start(), at: now)
    #expect(state.count(at: now) == 1)
    #expect(LaunchState(state.propertyList) == state)
  }

  @Test("is full again after a day of the clock that cannot be set, if the date was far ahead")
  func farAhead() {
    var state = LaunchState()
    state.begin(start(), at: Moment(day: 90_000, uptime: Self.hour, machine: 1))
    var now = Moment(day: 20_000, uptime: 24 * Self.hour, machine: 1)
    #expect(state.count(at: now) == 1)
    now.uptime = 25 * Self.hour
    #expect(state.count(at: now) == 0)
    state.begin(start(), at: now)
    #expect(state.count(at: now) == 1)
    // The clock of another machine, or of this one after a restart, means nothing.
    now.machine = 2
    now.uptime = 100 * Self.hour
    #expect(state.count(at: now) == 1)
  }
}
