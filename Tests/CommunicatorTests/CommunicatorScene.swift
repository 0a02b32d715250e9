import AppGroup
import PeerConnectivity
import TestSupport

/// A phone and a watch, each a process of its own, over one container.
struct CommunicatorScene {
  let directory: TemporaryDirectory
  /// Where the blobs of both lie on their way.
  let temporary: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    temporary = try TemporaryDirectory()
    container = try directory.container()
  }

  func start(_ role: String, watch: String = "watch") throws -> Participant {
    try Participant(
      directory.path,
      environment: [
        "WATCHCONNECTIVITY_ROLE=\(role)", "WATCHCONNECTIVITY_WATCH=\(watch)",
        "WORMHOLE_CONTAINER=\(directory.path)", "TMPDIR=\(temporary.path)",
      ])
  }

  /// A phone and a watch that reach each other.
  func startBoth() throws -> (phone: Participant, watch: Participant) {
    let (phone, watch) = (try start("phone"), try start("watch"))
    for side in [phone, watch] { try side.perform("observe state") }
    for side in [phone, watch] { try side.awaits("reachability", "immediatelyReachable") }
    return (phone, watch)
  }

  /// What the phone knows of its watches.
  var phonePairing: PeerPairing {
    PeerPairing(container, of: "phone", defaultCompanion: "watch")
  }

  /// What a watch knows of its phone.
  var watchPairing: PeerPairing {
    PeerPairing(container, of: "watch", defaultCompanion: "phone")
  }
}

extension Participant {
  /// Waits until one of its states is so.
  func awaits(_ kind: String, _ state: String) throws {
    try eventually("\(kind) of \(processID) is \(state)") {
      try ask("communicator-now \(kind)") == state
    }
  }

  func heard(_ kind: String) throws -> [String] {
    try ask("communicator-heard \(kind)").split(separator: " ").map(String.init)
  }

  /// Waits until observers or handlers were told so many values, and says which.
  @discardableResult
  func hears(_ kind: String, _ count: Int = 1) throws -> [String] {
    var all: [String] = []
    try eventually("\(processID) hears \(count) of \(kind), not \(all)") {
      all = try heard(kind)
      return all.count >= count
    }
    return all
  }

  func perform(_ verb: String) throws { _ = try ask("communicator-" + verb) }
}
