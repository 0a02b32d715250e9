import AppGroup
import FileCoordination
import SystemCalls

/// Another program's command line that runs as long as this process holds something for it.
///
/// It has our standard input and output. What is sent to this process to end it is passed on, so that
/// nothing is given up before the program has ended. A program that works on the item itself inherits
/// what is held, and so keeps it when this process is killed or stopped; one that works on a copy ends
/// with this process. When what is held was taken away, because this process was stopped or the program
/// took too long, the program is told to end (SIGTERM).
struct GuardedCommand {
  let command: ExternalCommand
  let access: HeldAccess
  /// Whether the program works on a private copy, which nobody publishes when this process is killed.
  let isOnCopy: Bool
  let environment: CommandEnvironment

  struct Outcome {
    let termination: Termination
    let loss: FileCoordinationError?
  }

  /// Being continued is one reason to look whether all is still held; a term that has passed gives no
  /// signal.
  private static let interval: Duration = .seconds(60)

  /// Runs the program to its end.
  ///
  /// - Parameter variables: added to the environment, as "NAME=value".
  /// - Throws: `CommandError` when it cannot be started.
  func run(variables: [String]) throws -> Outcome {
    do {
      // Received from before the program starts: none that arrives meanwhile is lost.
      let signals = try SignalReception(of: [.hangUp, .interrupt, .quit, .terminate, .continue])
      let child = try command.start(
        variables: variables, inheriting: isOnCopy ? nil : access.inheritance,
        endsWithParent: isOnCopy)
      var found: FileCoordinationError?
      do {
        if !isOnCopy { try access.handOn(toProcess: child.processID) }
      } catch let error as FileCoordinationError {
        // Stopped since it was started; the program was ended before the lock was taken away.
        found = error
      } catch {
        // Its number is not said to others; what it has inherited keeps them out all the same.
        environment.tell("\(error)")
      }
      while true {
        let ready = try waitReadable(
          [child.descriptor, signals.descriptor], until: .now + Self.interval)
        if ready[0] {
          guard let termination = try child.wait(until: .now) else { continue }
          return Outcome(termination: termination, loss: try found ?? lossBeforeEnd(termination))
        }
        for received in try signals.take() { try child.pass(received) }
        guard found == nil else { continue }
        do {
          found = try access.loss()
        } catch {
          // For want of descriptors, perhaps. It goes on, and is looked after again at its end.
          continue
        }
        if found != nil { try child.askToEnd() }
      }
    } catch let error as Errno {
      throw command.error(error)
    }
  }

  // What works on the item itself had it until it ended, unless it was ended to take it away.
  private func lossBeforeEnd(_ termination: Termination) throws -> FileCoordinationError? {
    guard isOnCopy || termination == .killed(signal: Signal.kill.rawValue) else { return nil }
    return try access.loss()
  }
}
