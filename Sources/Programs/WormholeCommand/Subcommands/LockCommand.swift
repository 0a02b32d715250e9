import AppGroup
import FileCoordination
import FoundationEssentials
import SystemCalls

extension CommandDescription {
  static let lock = CommandDescription(
    name: "lock",
    abstract: "Run a command while nothing else uses a file or directory.",
    discussion: """
      No other '\(ProgramName.called) lock', and no program that coordinates its file access, uses the file \
      meanwhile. WORMHOLE_FILE in the command's environment is its path. The command may change the \
      file in place:
        \(ProgramName.called) lock counter -- sh -c 'echo $(($(cat counter) + 1)) >counter'

      If {} occurs in the command's words, it stands for a private copy of the file instead, and so \
      does WORMHOLE_FILE. The changed copy is published in one step when the command ends with \
      status 0; when it fails, nothing is published:
        \(ProgramName.called) lock settings.json -- sed -i s/old/new/ {}

      With --shared others may share the file, but nobody may change it, and {} stands for the file \
      itself.

      The exit status is the command's; 126 and 127 when it cannot be run, 128 plus the signal's \
      number when it was killed. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to it.

      A command that works on the file itself holds the lock as long as it runs, and so do the \
      processes that it starts, even when this program is killed or stopped: they inherit the lock as \
      descriptor 10. Others may take the lock over when the command has been stopped for 50 \
      milliseconds, or runs for longer than an hour; they kill the command first. A command that works \
      on {} is killed together with this program, and nothing is published; when this program is \
      stopped, others may take the lock over after 50 milliseconds, and this program ends the command \
      (SIGTERM) when it is continued.
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
      name: "command", help: "Run while the file is locked; {} in its words is a private copy."),
    needsContainer: false
  ) { arguments, environment in
    try LockedRun(
      file: arguments.requiredText("file"), words: arguments.tail ?? [],
      isShared: arguments.has("shared"),
      timeout: arguments.seconds("timeout") ?? .seconds(60), environment: environment
    ).run().end()
  }
}

/// One run of a command while its file is locked.
struct LockedRun {
  /// As the user named it.
  let file: String
  let words: [String]
  let isShared: Bool
  let timeout: Duration
  let environment: CommandEnvironment

  /// Tells the command the path to use.
  private static let fileVariable = "WORMHOLE_FILE"
  /// Stands for that path in the command's words.
  private static let placeholder = "{}"

  /// Whether the command works on a private copy, which is published only if it succeeds.
  private var isOnCopy: Bool { !isShared && words.contains { $0.contains(Self.placeholder) } }

  func run() throws -> ExitStatus {
    // The command may change to another directory before it opens the file.
    let url = URL(filePath: try CommandLinePath.absolute(file, to: "lock"))
    do {
      let coordinator = FileCoordinator()
      guard timeout == .zero else { return try hold(url, coordinator) }
      // Even without a wait for holders of the file, its presenters get the time to answer.
      return try coordinator.prepare(
        forReadingItemsAt: isShared ? [url] : [], writingItemsAt: isShared ? [] : [url]
      ) { completion in
        defer { completion() }
        return try hold(url, coordinator)
      }
    } catch let error as FileCoordinationError {
      throw commandError(error)
    }
  }

  private func hold(_ url: URL, _ coordinator: FileCoordinator) throws -> ExitStatus {
    try coordinator.hold(
      itemAt: url, for: isOnCopy ? .content : isShared ? .sharing : .locking, until: .now + timeout,
      term: LeaseDeclaration.longestTerm, while: runCommand)
  }

  /// - Parameter url: the file that the command is to use.
  /// - Throws: `CommandError` when nothing may be published.
  private func runCommand(on url: URL, _ access: HeldAccess) throws -> ExitStatus {
    let path = url.path
    let command = ExternalCommand(words: words.map { $0.replacing(Self.placeholder, with: path) })
    let (termination, loss) = try environment.withoutTimeLimit {
      try end(of: command, path, access)
    }
    let failure = command.failure(termination)
    if let loss {
      let end = failure ?? "\(command.words[0]) ended with status 0"
      let consequence =
        isOnCopy ? "none of its changes is visible" : "its changes up to then are visible"
      throw CommandError(
        verb: "keep", object: file, reason: "\(taken(loss)); \(end), and \(consequence)",
        status: isOnCopy ? ExitStatus(of: loss) : ExitStatus(termination))
    }
    guard let failure else { return .done }
    let status = ExitStatus(termination)
    guard isOnCopy else {
      environment.tell(failure)
      return status
    }
    throw CommandError(
      verb: "change", object: file, reason: "\(failure); \(file) is unchanged", status: status)
  }

  /// Runs the command to its end.
  ///
  /// Signals that would end this process are passed on to the command, so that nothing is released
  /// before the command has ended. A command that works on the file itself inherits the lock, and so
  /// keeps it when this process is killed or stopped. When the lock was taken over, the command is
  /// told to end.
  ///
  /// - Returns: how the command ended, and the error when the lock was taken over before that.
  func end(
    of command: ExternalCommand, _ path: String, _ access: HeldAccess
  ) throws -> (Termination, FileCoordinationError?) {
    // Received from before the start of the command: a signal that arrives meanwhile is not lost.
    let interruption = try Interruption(quits: true)
    // A process that was stopped until now may have lost the lock, and there was no command to end then.
    if !isOnCopy, let loss = try access.loss() { throw loss }
    do {
      let child = try command.start(
        variables: ["\(Self.fileVariable)=\(path)"],
        inheriting: isOnCopy ? nil : access.inheritance, endsWithParent: isOnCopy)
      var loss: FileCoordinationError?
      do {
        if !isOnCopy { try access.handOn(toProcess: child.processID) }
      } catch let error as FileCoordinationError {
        // The command was killed before the takeover, or the takeover was just before its start: then
        // nothing else ends it.
        loss = error
        try child.send(.kill)
      } catch {
        // Others cannot read the command's process number; the inherited lock excludes them all the
        // same.
        environment.tell("\(error)")
      }
      var output = CollectedOutput(nil)
      let termination = try interruption.wait(forEndOf: child, &output) {
        guard loss == nil else { return false }
        // After an error, too few descriptors perhaps, the command goes on, and its end is the next check.
        loss = try? access.loss()
        return loss != nil
      }
      // A command that works on the file itself had it to its end, unless a takeover killed it.
      if loss == nil, isOnCopy || termination == .killed(signal: Signal.kill.rawValue) {
        loss = try access.loss()
      }
      return (termination, loss)
    } catch let error as Errno {
      throw command.error(error)
    }
  }

  private func taken(_ loss: FileCoordinationError) -> String {
    let successor = loss.holder.map { "\($0)," } ?? "another process"
    let stopped = isOnCopy ? "this process was stopped" : "the command was stopped"
    return "\(successor) took it over, because \(stopped) or held it for longer than an hour"
  }

  /// An error of the coordination, with this command's options as remedies.
  private func commandError(_ error: FileCoordinationError) -> CommandError {
    if error.code == .overtaken, !isOnCopy {
      return CommandError(
        verb: "keep", object: file, reason: taken(error), status: ExitStatus(of: error))
    }
    if error.code == .timedOut, timeout == .zero {
      let reason = error.holder.map { "\($0), holds it" } ?? error.reason
      return CommandError(verb: "lock", object: file, reason: reason, status: .no)
    }
    let remedy = error.remedy.map { "; \($0)" } ?? ""
    return CommandError(
      verb: isOnCopy ? "change" : "lock", object: file, reason: error.reason + remedy,
      status: ExitStatus(of: error))
  }
}
