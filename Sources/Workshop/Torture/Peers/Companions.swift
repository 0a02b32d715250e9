import AppGroup
import Histories
import PeerConnectivity
import SystemCalls

/// The work of a worker besides values and notifications, each kind on a thread of its own.
final class Companions {
  private let arguments: WorkerArguments
  private var turns:
    [(strand: Strand, recorder: Recorder, turn: @Sendable (inout SeededGenerator) throws -> Void)] =
      []
  private var strands: [SideStrand] = []
  private var requests: RequestStrand?
  private var watch: PresenceWatch?
  private var session: PeerSession?

  init(_ container: SharedContainer, _ arguments: WorkerArguments) throws {
    self.arguments = arguments
    if arguments.kinds.contains(.presence) { watch = try PresenceWatch(container) }
    if arguments.kinds.contains(.queues) {
      let recorder = try recorder(.queues)
      let queues = QueueStrand(container, recorder, arguments)
      turns.append((.queues, recorder, { try queues.turn(&$0) }))
    }
    guard !arguments.kinds.isDisjoint(with: [.requests, .files]) else { return }
    let session = try PeerSession(RequestStrand.name(slot: arguments.slot), in: container)
    self.session = session
    if arguments.kinds.contains(.requests) {
      let recorder = try recorder(.requests)
      let requests = try RequestStrand(session, recorder, arguments)
      self.requests = requests
      turns.append((.requests, recorder, { try requests.turn(&$0) }))
    }
    if arguments.kinds.contains(.files) {
      let recorder = try recorder(.files)
      let files = FileStrand(session, recorder, arguments)
      turns.append((.files, recorder, { try files.turn(&$0) }))
    }
  }

  private func recorder(_ strand: Strand) throws -> Recorder {
    try Recorder(arguments.directory, life: arguments.life, strand)
  }

  func begin() {
    strands = turns.map { SideStrand($0.strand, $0.recorder, arguments, $0.turn) }
  }

  /// Waits for the end; blocks the calling thread.
  func waitForEnd() throws {
    for strand in strands { strand.waitForEnd() }
    requests?.settle()
    for (_, recorder, _) in turns { try recorder.note(.rested) }
    let now = bootTimeNanoseconds()
    if now < arguments.end { pauseThread(.nanoseconds(Int64(arguments.end - now))) }
  }

  /// Returns the expected reports that have not arrived yet.
  func behind(_ last: [String: Histories.Value]) -> [String] {
    guard let watch, let sum = last[PresenceWatch.key], !watch.hasSeen(sum) else { return [] }
    return ["it never received exactly the present processes"]
  }
}
