import AppGroup
import FoundationEssentials
import PeerConnectivity
import PropertyLists
import SystemCalls
import TestSupport

/// A container with a peer "p" that others start.
struct LaunchScene {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let presence: Presence

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    presence = container.presence(PeerNames.presence("p"))
  }

  func participant() throws -> Participant { try Participant(directory.path) }

  /// Registers a participant as the peer's program; see `LaunchVerbs` for its manners.
  func register(
    _ manner: String, for occasions: PeerLaunch.Occasions = .request, budget: Int? = nil
  ) throws {
    try register(
      program: BuiltProgram.path("participant"), [directory.path, "launched", "p", manner],
      for: occasions, budget: budget)
  }

  func register(
    program: String, _ arguments: [String] = [], for occasions: PeerLaunch.Occasions = .request,
    budget: Int? = nil
  ) throws {
    try PeerSession.setLaunch(
      PeerLaunch(
        program: program, arguments: arguments, occasions: occasions, budgetPerDay: budget),
      of: "p", in: container)
  }

  /// How many programs were started, as they say themselves.
  func started() throws -> Int { try container.value("launched").read()?.intValue ?? 0 }

  /// Who is active.
  func active() throws -> [Int32] { try presence.members().map(\.processID) }

  func launch(
    for occasion: PeerLaunch.Occasions = .request, within seconds: Double = 20
  ) throws -> Bool {
    try Launcher.launch("p", for: occasion, in: container, until: .now + .seconds(seconds))
  }

  /// Ends whoever is active, and waits until nobody is.
  func killActive() throws {
    for process in try active() { try Program.send(.kill, to: process) }
    try eventually("nobody is active") { try active().isEmpty }
  }

  var registrationPath: String { container.value(PeerNames.launch("p")).path }
}
