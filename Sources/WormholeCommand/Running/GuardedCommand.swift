import AppGroup
import FileCoordination
import SystemCalls

/// Another program's command line that runs as long as this process holds something for it.
///
/// It has our standard input and output. What is sent to this process to end it is passed on, so that
/// nothing is given up before the program has ended. When what is held was taken away, because this
/// process was stopped or the program took too long, the program is told to end (SIGTERM).
struct GuardedCommand {
  let command: ExternalCommand
  /// Why nothing is held any more; nil while it is.
  let loss: () throws -> FileCoordinationError?

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
      let child = try ChildProcess(
        command.words[0], Array(command.words.dropFirst()),
        environment: Program.environment(with: variables))
      var found: FileCoordinationError?
      while true {
        let ready = try waitReadable(
          [child.descriptor, signals.descriptor], until: .now + Self.interval)
        if ready[0] {
          guard let termination = try child.wait(until: .now) else { continue }
          let last = try found ?? loss()
          return Outcome(termination: termination, loss: last)
        }
        for received in try signals.take() { try child.pass(received) }
        guard found == nil else { continue }
        do {
          found = try loss()
        } catch {
          // For want of descriptors, perhaps. It goes on, and is looked after again at its end.
          continue
        }
        if found != nil { try child.askToEnd() }
      }
    } catch let error as Errno {
      throw CommandError(
        verb: "run", object: command.words[0], reason: "\(error)", status: .no)
    }
  }
}
