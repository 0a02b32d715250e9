import Dispatch
import Synchronization
import Wormhole
import WormholeEtcd
import WormholePeers
import WormholeSystem
import WormholeWorkshop

/// The work of a worker besides values and notifications, each kind on a thread of its own.
final class Companions {
  private let arguments: WorkerArguments
  private var strands: [SideStrand] = []
  private var requests: RequestStrand?
  private var watch: PresenceWatch?
  private var changes: ChangeWatch?
  private var session: PeerSession?

  init(_ container: SharedContainer, _ arguments: WorkerArguments) throws {
    self.arguments = arguments
    if arguments.kinds.contains(.presence) {
      let recorder = try recorder(.watches)
      watch = try recorder.insisting(until: arguments.end) { try PresenceWatch(container) }
    }
    if arguments.kinds.contains(.watches), let place = arguments.directory.etcd {
      changes = try ChangeWatch(EtcdLocation(place), recorder(.watches))
    }
    if arguments.kinds.contains(.queues) {
      let recorder = try recorder(.queues)
      add(.queues, recorder: recorder, QueueStrand(container, recorder, arguments: arguments).turn)
    }
    if arguments.kinds.contains(.logs) {
      let recorder = try recorder(.logs)
      let logs = try recorder.insisting(until: arguments.end) {
        try LogStrand(container, recorder, arguments: arguments)
      }
      add(.logs, recorder: recorder, logs.turn)
    }
    guard !arguments.kinds.isDisjoint(with: [.requests, .files]) else { return }
    let session = try PeerSession(RequestStrand.name(slot: arguments.slot), in: container)
    self.session = session
    if arguments.kinds.contains(.requests) {
      let recorder = try recorder(.requests)
      let requests = try RequestStrand(session, recorder, arguments: arguments)
      self.requests = requests
      add(.requests, recorder: recorder, requests.turn)
    }
    if arguments.kinds.contains(.files) {
      let recorder = try recorder(.files)
      let files = FileStrand(session: session, recorder: recorder, arguments: arguments)
      add(.files, recorder: recorder, files.turn)
    }
  }

  private func add(
    _ strand: Strand, recorder: Recorder,
    _ turn: @escaping @Sendable (inout SeededGenerator) throws -> Void
  ) {
    strands.append(SideStrand(strand: strand, recorder: recorder, arguments: arguments, turn: turn))
  }

  private func recorder(_ strand: Strand) throws -> Recorder {
    try Recorder(arguments.directory, life: arguments.life, strand)
  }

  func begin() {
    changes?.begin()
    for strand in strands { strand.begin() }
  }

  /// Waits for the end; blocks the calling thread.
  func waitForEnd() throws {
    for strand in strands { strand.waitForEnd() }
    requests?.settle()
    settleTransfers()
    for strand in strands { try strand.recorder.note(.rested) }
    let now = bootTimeNanoseconds()
    if now < arguments.end { pauseThread(.nanoseconds(Int64(arguments.end - now))) }
  }

  /// Waits for transfers in the background: a restore removes files stored after its snapshot.
  private func settleTransfers() {
    guard arguments.directory.etcd != nil, arguments.kinds.contains(.files), let session else {
      return
    }
    let deadline = ContinuousClock.now + .seconds(20)
    // Without the list it waits for nothing; a file that the restore removes then fails its check.
    for transfer in (try? session.fileTransfers()) ?? [] {
      // A transfer that failed is an answer, too; the check of files looks for it on the other side.
      _ = try? transfer.waitUntilStored(until: deadline)
    }
  }

  /// Returns the expected reports that have not arrived yet.
  func behind(_ last: [String: HistoryValue]) -> [String] {
    var behind = changes?.behind() ?? []
    if let watch, let sum = last[PresenceWatch.key], !watch.hasSeen(sum) {
      behind.append("it never received exactly the present processes")
    }
    return behind
  }
}

/// A worker's repeated job on a thread of its own, until the run ends.
struct SideStrand {
  let strand: Strand
  let recorder: Recorder
  let arguments: WorkerArguments
  private let hasEnded = DispatchSemaphore(value: 0)
  /// One turn of the job. A replacement while the process was stopped is not a failure; any other
  /// error is.
  let turn: @Sendable (inout SeededGenerator) throws -> Void

  func begin() {
    Blocking.queue().async { [self] in
      var random = SeededGenerator(
        seed: mix(arguments.seed &+ UInt64(strand.rawValue)) ^ UInt64(arguments.life))
      while bootTimeNanoseconds() < arguments.end {
        do {
          try Self.disturbed(&random, turn)
        } catch {
          recorder.noteOrEnd(recorder.passing(error) ?? .failed("\(strand): \(error)"))
        }
        pauseThread(random.milliseconds(0...4))
      }
      hasEnded.signal()
    }
  }

  private static func disturbed(
    _ random: inout SeededGenerator, _ turn: (inout SeededGenerator) throws -> Void
  ) throws {
    var disturbance = Disturbance()
    if random.chance(3) {
      let place = Interruption.Place.call(Int.random(in: 0..<80, using: &random))
      disturbance.interruption = Interruption(place: place, isFatal: random.chance(10))
    }
    try disturbance.during { try turn(&random) }
  }

  /// Waits for the end; blocks the calling thread.
  func waitForEnd() { hasEnded.wait() }
}
