import Dispatch
import Synchronization
import Testing
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeTestSupport

/// A container with a session of the test, and another process.
struct RequestScene {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let session: PeerSession

  init(_ name: String = "phone") throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    session = try PeerSession(name, in: container)
  }

  /// Starts another process that is active under a name, with a manner of handling.
  func peer(_ name: String = "watch", _ manner: String? = "echo") throws -> Participant {
    let participant = try Participant(directory.path)
    if let manner { #expect(try participant.ask("peer-handle \(name) \(manner)") == "done") }
    #expect(try participant.ask("peer-activate \(name)") == "done")
    return participant
  }

  /// Returns the requests that another process holds, once their number is reached.
  func held(_ participant: Participant, _ name: String = "watch", count: Int) throws -> [String] {
    var held: [String] = []
    try eventually("\(count) requests have arrived") {
      held = try participant.ask("peer-held \(name)").split(separator: " ").map(String.init)
      return held.count >= count
    }
    return held
  }
}

/// Runs a call, and returns its error as one between peers.
func peerError(_ body: () throws -> Void) throws -> WormholeError {
  try #require(throws: WormholeError.self) { try body() }
}

/// The ends of calls, in the order of their arrival.
final class CallEnds: Sendable {
  typealias End = Result<PropertyListValue, WormholeError>

  private let ends = Mutex<[(Int, End)]>([])

  func add(_ number: Int, _ end: End) { ends.withLock { $0.append((number, end)) } }

  var all: [(number: Int, end: End)] { ends.withLock { $0 } }

  var codes: [WormholeError.Code?] {
    all.map { if case .failure(let error) = $0.end { error.code } else { nil } }
  }

  func wait(for count: Int) throws {
    try eventually("\(count) calls have ended") { all.count >= count }
  }
}

/// Runs the body of a handler; its error is an issue of the test.
func noting(_ body: () throws -> Void) {
  do { try body() } catch { Issue.record(error) }
}
