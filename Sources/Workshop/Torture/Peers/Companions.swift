import AppGroup
import Dispatch
import Histories
import PeerConnectivity
import SystemCalls

/// The work of a worker besides values and notifications, each kind on a thread of its own.
final class Companions {
  private let arguments: WorkerArguments
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
      strands.append(SideStrand(.queues, recorder, arguments) { try queues.turn(&$0) })
    }
    guard !arguments.kinds.isDisjoint(with: [.requests, .files]) else { return }
    let session = try PeerSession(RequestStrand.name(slot: arguments.slot), in: container)
    self.session = session
    if arguments.kinds.contains(.requests) {
      let recorder = try recorder(.requests)
      let requests = try RequestStrand(session, recorder, arguments)
      self.requests = requests
      strands.append(SideStrand(.requests, recorder, arguments) { try requests.turn(&$0) })
    }
    if arguments.kinds.contains(.files) {
      let recorder = try recorder(.files)
      let files = FileStrand(session, recorder, arguments)
      strands.append(SideStrand(.files, recorder, arguments) { try files.turn(&$0) })
    }
  }

  private func recorder(_ strand: Strand) throws -> Recorder {
    try Recorder(arguments.directory, life: arguments.life, strand)
  }

  func begin() { for strand in strands { strand.begin() } }

  /// Waits for the end; blocks the calling thread.
  func waitForEnd() throws {
    for strand in strands { strand.waitForEnd() }
    requests?.settle()
    for strand in strands { try strand.recorder.note(.rested) }
    let now = bootTimeNanoseconds()
    if now < arguments.end { pauseThread(.nanoseconds(Int64(arguments.end - now))) }
  }

  /// Returns the expected reports that have not arrived yet.
  func behind(_ last: [String: Histories.Value]) -> [String] {
    guard let watch, let sum = last[PresenceWatch.key], !watch.hasSeen(sum) else { return [] }
    return ["it never received exactly the present processes"]
  }
}

/// A worker's repeated job on a thread of its own, until the run ends.
final class SideStrand: Sendable {
  let recorder: Recorder
  private let strand: Strand
  private let arguments: WorkerArguments
  private let turn: @Sendable (inout SeededGenerator) throws -> Void
  private let hasEnded = DispatchSemaphore(value: 0)

  /// - Parameter turn: One turn of the job. A replacement while the process was stopped is not a
  ///   failure; any other error is.
  init(
    _ strand: Strand, _ recorder: Recorder, _ arguments: WorkerArguments,
    _ turn: @escaping @Sendable (inout SeededGenerator) throws -> Void
  ) {
    self.strand = strand
    self.recorder = recorder
    self.arguments = arguments
    self.turn = turn
  }

  func begin() {
    Blocking.queue().async { [self] in
      var random = SeededGenerator(
        seed: mix(arguments.seed &+ UInt64(strand.rawValue)) ^ UInt64(arguments.life))
      while bootTimeNanoseconds() < arguments.end {
        do {
          try Self.disturbed(&random, turn)
        } catch let error as AppGroupError where error.code == .leaseLost {
          recorder.noteOrEnd(.lost)
        } catch let error as AppGroupError where error.code == .timedOut {
          recorder.noteOrEnd(.timedOut)
        } catch let error as PeerError where [.replaced, .notActive].contains(error.code) {
          recorder.noteOrEnd(.lost)
        } catch let error as PeerError where error.code == .timedOut {
          recorder.noteOrEnd(.timedOut)
        } catch {
          recorder.noteOrEnd(.failed("\(strand): \(error)"))
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
