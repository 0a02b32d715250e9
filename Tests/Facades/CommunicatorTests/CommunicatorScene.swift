import Wormhole
import WormholePeers
import WormholeTestSupport

/// A phone and a watch, each a separate process, over one container.
final class CommunicatorScene: Sendable {
  let directory: TemporaryDirectory
  /// The directory of both sides' temporary blobs.
  let temporary: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    temporary = try TemporaryDirectory()
    container = try directory.container()
  }

  func start(_ role: String, watch: String = "watch") throws -> Side {
    let process = try Participant(
      directory.path,
      environment: [
        "WATCHCONNECTIVITY_ROLE=\(role)", "WATCHCONNECTIVITY_WATCH=\(watch)",
        "WORMHOLE_CONTAINER=\(directory.location)", "TMPDIR=\(temporary.path)",
      ])
    return Side(process, self)
  }

  /// Starts a phone and a watch that reach each other.
  func startBoth() throws -> (phone: Side, watch: Side) {
    let (phone, watch) = (try start("phone"), try start("watch"))
    for side in [phone, watch] { try side.perform("observe state") }
    for side in [phone, watch] { try side.awaits("reachability", "immediatelyReachable") }
    return (phone, watch)
  }

  /// The phone's watches.
  var phonePairing: Pairing { Pairing(of: "phone", in: container) }

  /// The watch's phone.
  var watchPairing: Pairing { Pairing(of: "watch", in: container) }
}

/// One of the two processes; the scene's directories last as long as it does.
final class Side: Sendable {
  let process: Participant
  private let scene: CommunicatorScene?

  private struct Refusal: Error {
    let verb: String
    let answer: String
  }

  init(_ process: Participant, _ scene: CommunicatorScene? = nil) {
    self.process = process
    self.scene = scene
  }

  /// Returns the participant's answer to a verb; see `CommunicatorVerbs`.
  func ask(_ verb: String) throws -> String { try process.ask("communicator-" + verb) }

  func perform(_ verb: String) throws {
    let answer = try ask(verb)
    guard answer == "done" else { throw Refusal(verb: verb, answer: answer) }
  }

  /// Waits until one of its states has a value.
  func awaits(_ kind: String, _ state: String) throws {
    try eventually("\(kind) of \(process.processID) is \(state)") {
      try ask("now \(kind)") == state
    }
  }

  func heard(_ kind: String) throws -> [String] {
    try ask("heard \(kind)").split(separator: " ").map(String.init)
  }

  /// Waits until observers or handlers received a number of values, and returns them.
  @discardableResult
  func hears(_ kind: String, _ count: Int = 1) throws -> [String] {
    var all: [String] = []
    try eventually("\(process.processID) hears \(count) of \(kind)") {
      all = try heard(kind)
      return all.count >= count
    }
    return all
  }

  /// Kills it.
  func end() throws { try process.end() }
}
