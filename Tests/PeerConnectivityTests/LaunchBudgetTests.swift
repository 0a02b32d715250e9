import AppGroup
import SystemCalls
import TestScopes
import TestSupport
import Testing

@testable import PeerConnectivity

@Suite("A budget of starts", .blocking)
struct LaunchBudgetTests {
  private typealias Moment = LaunchState.Moment
  private static let hour: UInt64 = 3_600 * 1_000_000_000

  private func start() -> LaunchState.Start {
    .init(nonce: "a", launcher: .current, uptime: 0)
  }

  @Test("is counted before the start, for all who ask, and says when it is used up")
  func counted() throws {
    let scene = try LaunchScene()
    try scene.register("active", budget: 2)
    #expect(try PeerSession.remainingLaunches(of: "p", in: scene.container) == 2)
    #expect(try scene.launch())
    #expect(try PeerSession.remainingLaunches(of: "p", in: scene.container) == 1)
    try scene.killActive()
    #expect(try scene.participant().ask("launch p") == "true")
    try scene.killActive()
    #expect(try !Launcher.isLaunchable("p", for: .request, in: scene.container))
    let error = try #require(throws: PeerError.self) { try scene.launch() }
    #expect(error.code == .notLaunched && error.reason.contains("2 times today"), "\(error)")
    #expect(try scene.started() == 2)
    // Registering it again gives nothing back; a larger budget does.
    try scene.register("active", budget: 2)
    #expect(try PeerSession.remainingLaunches(of: "p", in: scene.container) == 0)
    try scene.register("active", budget: 3)
    #expect(try scene.launch())
    try scene.register("active", budget: 1)
    #expect(try PeerSession.remainingLaunches(of: "p", in: scene.container) == 0)
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

  @Test("is full again after a day by the clock that cannot be set, if the date was far ahead")
  func farAhead() {
    var state = LaunchState()
    state.begin(start(), at: Moment(day: 90_000, uptime: Self.hour, machine: 1))
    var now = Moment(day: 20_000, uptime: 24 * Self.hour, machine: 1)
    #expect(state.count(at: now) == 1)
    now.uptime = 25 * Self.hour
    #expect(state.count(at: now) == 0)
    state.begin(start(), at: now)
    #expect(state.count(at: now) == 1)
    // The clock of another machine, or of this one started anew, says nothing.
    now.machine = 2
    now.uptime = 100 * Self.hour
    #expect(state.count(at: now) == 1)
  }
}
