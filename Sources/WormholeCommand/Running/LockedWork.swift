import FileCoordination
import FoundationEssentials
import SystemCalls

/// The command of `wormhole lock`, to be run while the file is held, and what is said when it failed.
struct LockedWork {
  /// As the user named it.
  let file: String
  let words: [String]
  /// Whether it works on a private copy, which is published only if it succeeds.
  let isOnCopy: Bool
  /// Whether others are not waited for.
  let isImpatient: Bool
  let environment: CommandEnvironment

  /// Tells the command which path to use.
  static let fileVariable = "WORMHOLE_FILE"
  /// Stands for that path in the command's words.
  static let placeholder = "{}"

  /// - Parameter url: what the command is to use.
  /// - Throws: `CommandError` when nothing may be published.
  func run(on url: URL, _ access: HeldAccess) throws -> ExitStatus {
    let path = url.path
    let command = ExternalCommand(words: words.map { $0.replacing(Self.placeholder, with: path) })
    let guarded = GuardedCommand(
      command: command, access: access, isOnCopy: isOnCopy, environment: environment)
    let outcome = try environment.withoutTimeLimit {
      try guarded.run(variables: ["\(Self.fileVariable)=\(path)"])
    }
    let failure = command.failure(outcome.termination)
    if let loss = outcome.loss {
      let end = failure ?? "\(command.words[0]) ended with status 0"
      let consequence =
        isOnCopy ? "nothing of its change is visible" : "what it had changed by then is visible"
      throw CommandError(
        verb: "keep", object: file, reason: "\(taken(loss)); \(end), and \(consequence)",
        status: isOnCopy ? loss.exitStatus : ExitStatus(outcome.termination))
    }
    guard let failure else { return .done }
    let status = ExitStatus(outcome.termination)
    guard isOnCopy else {
      environment.tell(failure)
      return status
    }
    throw CommandError(
      verb: "change", object: file, reason: "\(failure); \(file) is unchanged", status: status)
  }

  private func taken(_ loss: FileCoordinationError) -> String {
    let who = loss.holder.map { "\($0)," } ?? "another process"
    let stopped = isOnCopy ? "this process was stopped" : "the command was stopped"
    return "\(who) took it away, because \(stopped) or had it for longer than an hour"
  }

  /// An error of the coordination, as this program says it.
  func commandError(_ error: FileCoordinationError) -> CommandError {
    if error.code == .overtaken, !isOnCopy {
      return CommandError(
        verb: "keep", object: file, reason: taken(error), status: error.exitStatus)
    }
    if error.code == .timedOut, isImpatient {
      let reason = error.holder.map { "\($0), has it" } ?? error.reason
      return CommandError(verb: "lock", object: file, reason: reason, status: .no)
    }
    let remedy = error.remedy.map { "; \($0)" } ?? ""
    return CommandError(
      verb: isOnCopy ? "change" : "lock", object: file, reason: error.reason + remedy,
      status: error.exitStatus)
  }
}
