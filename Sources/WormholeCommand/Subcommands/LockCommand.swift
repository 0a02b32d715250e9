import AppGroup
import FileCoordination
import FoundationEssentials
import SystemCalls

struct LockCommand: Subcommand {
  static let description = CommandDescription(
    name: "lock",
    abstract: "Run a command while no other one has a file or directory.",
    discussion: """
      The file is kept from every other 'wormhole lock' and from every program that coordinates its \
      file access, and WORMHOLE_FILE in the command's environment is its path. The command may \
      change it where it is:
        wormhole lock counter -- sh -c 'echo $(($(cat counter) + 1)) >counter'

      If {} occurs in the command's words, it stands for a private copy of the file instead, and so \
      does WORMHOLE_FILE. What the command leaves there is published in one step when it ends \
      with status 0; when it fails, nothing is:
        wormhole lock settings.json -- sed -i s/old/new/ {}

      With --shared others may share the file, but nobody may change it, and {} stands for the file \
      itself.

      This program holds the lock as long as it runs: killed, it releases it at once; stopped, \
      it can be overtaken after 50 milliseconds, as it can be when the command takes longer than an \
      hour. Then it ends the command (SIGTERM), says who overtook it, and exits with status 1. \
      SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the command.
      """,
    positionals: [.file],
    options: [
      .flag("shared", help: "Share the file with others who share it."),
      .value(
        "timeout", "seconds", .seconds, standard: "60",
        help: "Wait this long for others, then exit with status 124; with 0, do not wait and exit "
          + "with status 1."),
    ],
    tail: TailDescription(
      name: "command", help: "Run while the file is held; {} in its words is a private copy."),
    needsContainer: false)

  /// Tells the command which path to use.
  static let fileVariable = "WORMHOLE_FILE"

  private static let standardTimeout: Duration = .seconds(60)
  private static let placeholder = "{}"

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let timeout = arguments.seconds("timeout") ?? Self.standardTimeout
    let file = arguments.requiredText("file")
    let words = arguments.tail ?? []
    let isShared = arguments.has("shared")
    let usesCopy = !isShared && words.contains { $0.contains(Self.placeholder) }
    let url = URL(filePath: try Self.absolute(file))
    let deadline = ContinuousClock.now + timeout
    let coordinator = FileCoordinator()
    let hold = {
      if usesCopy {
        try coordinator.hold(
          copyOfItemAt: url, until: deadline, term: LeaseDeclaration.longestTerm
        ) {
          try Self.run(words, on: $0, named: file, isCopy: true, $1)
        }
      } else {
        try coordinator.hold(
          itemAt: url, isShared: isShared, until: deadline, term: LeaseDeclaration.longestTerm
        ) {
          try Self.run(words, on: $0, named: file, isCopy: false, $1)
        }
      }
    }
    do {
      if timeout == .zero {
        try Self.prepare(coordinator, url, isShared: isShared, hold)
      } else {
        try hold()
      }
      return .done
    } catch let error as FileCoordinationError {
      throw Self.commandError(error, file, usesCopy: usesCopy, isBusy: timeout == .zero)
    }
  }

  /// Asks presenters first: not to wait for who has the file is no reason to leave those who show it
  /// no time to answer.
  private static func prepare(
    _ coordinator: FileCoordinator, _ url: URL, isShared: Bool, _ hold: () throws -> Void
  ) throws {
    try coordinator.prepare(
      forReadingItemsAt: isShared ? [url] : [], writingItemsAt: isShared ? [] : [url]
    ) { completion in
      defer { completion() }
      try hold()
    }
  }

  /// The command may change to another directory before it looks for the file.
  private static func absolute(_ file: String) throws -> String {
    guard !file.hasPrefix("/") else { return file }
    do throws(Errno) {
      let directory = try linkTarget("/proc/self/cwd")
      return directory == "/" ? "/" + file : directory + "/" + file
    } catch {
      throw CommandError(
        verb: "lock", object: file, reason: "the current directory cannot be found: \(error)",
        status: .inputOutput)
    }
  }

  private static func run(
    _ words: [String], on url: URL, named file: String, isCopy: Bool, _ access: HeldAccess
  ) throws {
    let command = ExternalCommand(words: words.map { $0.replacing(placeholder, with: url.path) })
    let outcome = try GuardedCommand(command: command, loss: access.loss).run(
      variables: ["\(fileVariable)=\(url.path)"])
    if let loss = outcome.loss {
      throw lost(loss, file, command, outcome.termination, isCopy: isCopy)
    }
    guard let failure = command.failure(outcome.termination) else { return }
    let consequence = isCopy ? "\(failure); \(file) is unchanged" : failure
    throw CommandError(
      verb: isCopy ? "change" : "finish with", object: file, reason: consequence, status: .no)
  }

  private static func lost(
    _ loss: FileCoordinationError, _ file: String, _ command: ExternalCommand,
    _ termination: Termination, isCopy: Bool
  ) -> CommandError {
    let end = command.failure(termination) ?? "\(command.words[0]) ended with status 0"
    let consequence =
      isCopy
      ? "nothing of its change is visible" : "it may have worked on \(file) at the same time"
    return CommandError(
      verb: "keep", object: file,
      reason: "\(taken(loss)); \(end), and \(consequence)", status: loss.exitStatus)
  }

  private static func taken(_ loss: FileCoordinationError) -> String {
    let who = loss.holder.map { "\($0)," } ?? "another process"
    return "\(who) took it away, because this process was stopped or had it for longer than an hour"
  }

  private static func commandError(
    _ error: FileCoordinationError, _ file: String, usesCopy: Bool, isBusy: Bool
  ) -> CommandError {
    switch error.code {
    case .overtaken where error.holder != nil && !usesCopy:
      return CommandError(
        verb: "keep", object: file, reason: taken(error), status: error.exitStatus)
    case .timedOut where isBusy:
      let reason = error.holder.map { "\($0), has it" } ?? error.reason
      return CommandError(verb: "lock", object: file, reason: reason, status: .no)
    default:
      let remedy = error.remedy.map { "; \($0)" } ?? ""
      return CommandError(
        verb: usesCopy ? "change" : "lock", object: file, reason: error.reason + remedy,
        status: error.exitStatus)
    }
  }
}
