import AppGroup
import Dispatch
import PeerConnectivity
import SystemCalls

/// A worker's repeated job on a thread of its own, until the run ends.
final class SideStrand: Sendable {
  private let hasEnded = DispatchSemaphore(value: 0)

  /// - Parameter turn: One turn of the job. A replacement while the process was stopped is not a
  ///   failure; any other error is.
  init(
    _ strand: Strand, _ recorder: Recorder, _ arguments: WorkerArguments,
    _ turn: @escaping @Sendable (inout SeededGenerator) throws -> Void
  ) {
    let hasEnded = hasEnded
    Blocking.queue().async {
      var random = SeededGenerator(
        seed: mix(arguments.seed &+ UInt64(strand.rawValue)) ^ UInt64(arguments.life))
      do throws(Errno) {
        while bootTimeNanoseconds() < arguments.end {
          do {
            try Self.disturbed(&random, turn)
          } catch let error as AppGroupError where error.code == .leaseLost {
            try recorder.note(.lost)
          } catch let error as AppGroupError where error.code == .timedOut {
            try recorder.note(.timedOut)
          } catch let error as PeerError where [.replaced, .notActive].contains(error.code) {
            try recorder.note(.lost)
          } catch let error as PeerError where error.code == .timedOut {
            try recorder.note(.timedOut)
          } catch {
            try recorder.note(.failed("\(strand): \(error)"))
          }
          pauseThread(random.milliseconds(0...4))
        }
      } catch {
        Terminal.say("torture: cannot write the journal: \(error)")
        Program.exit(74)
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
