import SystemCalls
import Terminals

/// A worker as the main process sees it. It is killed when this value is released.
final class WorkerProcess {
  let slot: Int
  let life: Int
  /// The time to continue it; nil while it is not known to be stopped.
  var continuation: ContinuousClock.Instant?
  let process: LineProcess

  init(_ arguments: WorkerArguments) throws {
    slot = arguments.slot
    life = arguments.life
    process = try LineProcess(
      Program.executablePath(), ["worker", jsonText(arguments)], readsErrors: false)
  }

  var processID: Int32 { process.processID }

  func send(_ signal: Signal) throws { try process.send(signal) }

  /// Returns how it ended, or nil while it lives.
  func end(until deadline: ContinuousClock.Instant = .now) throws -> Termination? {
    try process.termination(until: deadline)
  }

  /// Returns its next line, or nil if there is none before the deadline or it has ended.
  func line(until deadline: ContinuousClock.Instant) throws -> String? {
    do {
      return try process.line(until: deadline)
    } catch is LineProcess.Failure {
      return nil
    }
  }
}
