import FoundationEssentials
import Wormhole
import WormholeFiles
import WormholeSystem
import WormholeTerminals
import WormholeToolkit

extension CommandDescription {
  static let lock = CommandDescription(
    name: "lock",
    abstract: "Run a command while it holds the lock of a file, directory or name.",
    discussion: """
      No other '\(ProgramName.called) lock', and no program that coordinates its file access, uses the file \
      meanwhile. WORMHOLE_FILE in the command's environment is its path. The command may change the \
      file in place:
        \(ProgramName.called) lock counter -- sh -c 'echo $(($(cat counter) + 1)) >counter'

      If {} occurs in the command's words, it stands for a private copy of the file instead, and so \
      does WORMHOLE_FILE. The changed copy is published in one step when the command ends with \
      status 0; when it fails, nothing is published:
        \(ProgramName.called) lock settings.json -- sed -i s/old/new/ {}
      The copy of a directory has files of its own: of hard links each becomes one.
      In a shell, pass it as an argument, because a shell splits a name with spaces:
        \(ProgramName.called) lock 'a b' -- sh -c 'sort -u "$1" -o "$1"' sh {}

      With --shared others may share the file, but nobody may change it, and {} stands for the file \
      itself. A missing file is locked for this command alone. When the command has been stopped for 50 \
      milliseconds, others may change the file, and do not end it.

      With --name instead of FILE, the lock is that of a name in the container, and on etcd it excludes all \
      machines. 'presence list' shows its holder, alone. The command is killed together with this program. \
      When all of its processes have been stopped for 50 milliseconds, others may take the name over; they \
      kill all of them first, and the exit status is 1, or 128 plus the signal's number:
        \(ProgramName.called) lock --name nightly-backup -n -- sh backup.sh
      On etcd a holder that is cut off loses the name when its session ends (ttl=). Its command gets SIGTERM \
      after eight tenths of that time and SIGKILL after nine, before a successor's can begin.

      The command has the name in WORMHOLE_IDENTIFIER, and in WORMHOLE_FENCE a number that is larger with \
      each holder: with --while, 'send' and 'queue put' do nothing once another one has the name, and other \
      systems can refuse a smaller number than they have seen.

      The lock is held as long as the command runs, and what it has started, however long that is; this \
      program waits for all of it. A daemon holds nothing: for a name that is a process with a session of \
      its own (setsid) whose starter has ended, for a file a process that has closed descriptor 10. With --term, others may take it \
      over after that time. -n, -w, -s and -E are those of flock(1), and the two programs exclude each \
      other, if the file exists and the command works on the file itself.

      Of the descriptors of this program the command has 0, 1 and 2, unlike with flock(1): a shell that \
      opens others for it (3<FILE, <(...)) is started as the command.

      The exit status is the command's; 126 and 127 when it cannot be run, 128 plus the signal's \
      number when it was killed. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to it, and to what it \
      has started.

      A command that works on the file itself holds the lock until it ends, even when this program is \
      killed or stopped: it inherits the lock as descriptor 10, and so do the processes that it starts. \
      When this program is killed, its lock of flock(1) ends, and the processes hold the other until the \
      last has ended. Others may take the lock over when the command has been stopped for 50 \
      milliseconds, or for --grace at its terminal (Ctrl-Z); they kill it first, with all that it has \
      started. A command that works on {} is killed together with this \
      program, and nothing is published; the next access removes what is left of the copy in \
      .coordination-FILE. When this program is stopped, others may take the lock over \
      after 50 milliseconds, and this program ends the command (SIGTERM) when it is continued; when only \
      the command is stopped, after a minute. A holder that others cannot see, because it lives in \
      another container or on another machine, gives them a sign of life every ten minutes, and they take \
      the lock over when they have seen none for an hour.
      """,
    arguments: [
      .optional(
        "file", .file, help: "A file or directory; it need not exist, but its directory must."),
      .value("name", .live(.presence), named: "name", help: "Lock this name, and no file."),
      .flag("shared", letter: "s", help: "Share the file with others who share it."),
      .value(
        "timeout", letter: "w", .duration, standard: "60",
        help: "Wait this long for others, then exit with status 1; with 0, do not wait."),
      .flag("nonblock", letter: "n", help: "Do not wait: as --timeout 0."),
      .flag("exclusive", letter: "x", help: "Do not share it: the default."),
      .value(
        "conflict-exit-code", letter: "E", .unsigned, named: "status",
        help: "Exit with this status when others hold the lock."),
      .value(
        "term", .duration,
        help: "Let others take the lock over after this time, although the command runs."),
      .value(
        "grace", .duration, standard: "30",
        help: "Keep the lock this long after Ctrl-Z at its terminal."),
      .command(help: "Run while the file is locked; {} in its words is a private copy."),
    ],
    containerOption: "name"
  ) { arguments, environment in
    if let name = arguments.text("name") {
      return try runAlone(named: name, arguments, environment)
    }
    try LockedRun(
      file: arguments.requiredText("file"), words: arguments.tail ?? [],
      isShared: arguments.has("shared"), term: arguments.duration("term"),
      grace: arguments.isGiven("grace") ? arguments.duration("grace") : nil,
      wait: LockWait(arguments), environment: environment
    ).run().end()
  }
  .refusing { arguments in
    let isOfName = arguments.text("name") != nil
    if isOfName == (arguments.text("file") != nil) { return "give either a file or --name" }
    if isOfName, ["shared", "term", "grace"].contains(where: arguments.isGiven) {
      return "--shared, --term and --grace are for files"
    }
    if arguments.has("shared"), let option = ["term", "grace"].first(where: arguments.isGiven) {
      return "--\(option) is for a file that is not shared"
    }
    if arguments.isGiven("term"), arguments.isGiven("grace") {
      return "--term and --grace exclude each other: one lets others in, the other keeps them out"
    }
    if !isOfName, let option = ["group", "container"].first(where: { arguments.text($0) != nil }) {
      return "--\(option) is only for --name"
    }
    if arguments.has("shared"), arguments.has("exclusive") { return "-s and -x exclude each other" }
    if arguments.has("nonblock"), arguments.isGiven("timeout") {
      return "-n and -w exclude each other: one does not wait, the other waits"
    }
    return (arguments.unsigned("conflict-exit-code") ?? 0) > 255
      ? "an exit status is at most 255" : nil
  }
}

/// How long to wait for a lock, and how the program ends when others have it.
struct LockWait {
  let timeout: Duration
  /// Nil for 1, as with flock(1).
  var conflictStatus: ExitStatus?

  /// - Parameter reason: Why it was not available in time.
  func conflict(_ lock: String, heldBy holder: LeaseHolder?, _ reason: String) -> CommandError {
    let isWait = timeout > .zero
    return CommandError(
      cannot: "lock \(lock)", because: isWait ? reason : holder?.holding ?? reason,
      status: conflictStatus ?? .no)
  }
}

extension LockWait {
  init(_ arguments: ParsedArguments) {
    timeout = arguments.has("nonblock") ? .zero : arguments.duration("timeout") ?? .zero
    conflictStatus = arguments.unsigned("conflict-exit-code")
      .map { ExitStatus(rawValue: Int32(clamping: $0)) }
  }
}

/// Runs a command in the exclusive role of a name; throws its status, or an error if the role was
/// lost.
private func runAlone(
  named name: String, _ arguments: ParsedArguments, _ environment: CommandEnvironment
) throws {
  let presence = try arguments.container.open().presence(name)
  let wait = LockWait(arguments)
  // Received from before the start of the command: a signal that arrives meanwhile is not lost.
  let interruption = try Interruption(quits: true, adopts: true)
  let deadline = ContinuousClock.now + wait.timeout
  try LostBeforeStart.repeating {
    let entered: PresenceRegistration?
    do {
      entered = try interruption.wait {
        try await presence.enterExclusively(
          overtaking: presence.overtakingOfCommands, until: deadline)
      }
    } catch let error as WormholeError where error.code == .timedOut {
      throw wait.conflict(name.quoted, heldBy: error.holder, error.reason)
    }
    guard let entered else { throw interruption.endStatus }
    try environment.run(
      arguments.requiredCommand(), as: entered, isAlone: true, interruption)
  }
}

struct LockedRun {
  /// As the user named it.
  let file: String
  let words: [String]
  let isShared: Bool
  /// Nil for a term as long as the command runs.
  let term: Duration?
  /// Nil for `LeaseRequest.graceAtTerminal`.
  var grace: Duration?
  let wait: LockWait
  let environment: CommandEnvironment

  /// How often others get a sign of life; a few may fail in the hour after which they take over.
  private static let renewalInterval: Duration = .seconds(600)
  private static let fileVariable = "WORMHOLE_FILE"
  /// Stands for that path in the command's words.
  private static let placeholder = "{}"

  /// Whether the command works on a private copy, which is published only if it succeeds.
  private var isOnCopy: Bool { !isShared && words.contains { $0.contains(Self.placeholder) } }

  func run() throws -> ExitStatus {
    // The command may change to another directory before it opens the file.
    let url = URL(filePath: try CommandLinePath.absolute(file, to: "lock"))
    try checkWords(url.path)
    do {
      let coordinator = FileCoordinator()
      let deadline = ContinuousClock.now + wait.timeout
      return try LostBeforeStart.repeating {
        guard wait.timeout == .zero else { return try hold(url, coordinator, until: deadline) }
        // Even without a wait for holders of the file, its presenters get the time to answer.
        return try coordinator.prepareBriefly(itemAt: url, isShared: isShared) {
          try hold(url, coordinator, until: deadline)
        }
      }
    } catch let error as WormholeError {
      throw commandError(error)
    }
  }

  /// Refuses a path within a longer word, which may be shell code, unless every shell takes the
  /// path as it is.
  private func checkWords(_ path: String) throws(CommandError) {
    let plain = { (byte: UInt8) in
      UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 || Self.plainBytes.contains(byte)
    }
    guard !path.utf8.allSatisfy(plain),
      let word = words.first(where: { $0 != Self.placeholder && $0.contains(Self.placeholder) })
    else { return }
    throw CommandError(
      cannot: "lock \(file)",
      because: "\(Self.placeholder) is a part of \(word.quotedForShell), and a shell would "
        + "not take the name of this file as it is: pass it as an argument, as in "
        + "sh -c 'sort -u \"$1\" -o \"$1\"' sh \(Self.placeholder)", status: .usage)
  }

  private static let plainBytes = Set("0123456789_./,:@%+=-".utf8)

  private func hold(
    _ url: URL, _ coordinator: FileCoordinator, until deadline: ContinuousClock.Instant
  ) throws -> ExitStatus {
    try coordinator.hold(
      itemAt: url, for: isOnCopy ? .content : isShared ? .sharing : .locking,
      until: deadline, term: term, while: runCommand)
  }

  /// - Parameter url: the file that the command is to use.
  /// - Throws: `CommandError` if nothing may be published.
  private func runCommand(on url: URL, _ access: ItemAccess) throws -> ExitStatus {
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
        cannot: "keep \(file)", because: "\(taken(loss)); \(end), and \(consequence)",
        status: isOnCopy ? ExitStatus(of: loss) : ExitStatus(termination))
    }
    guard let failure else { return .done }
    let status = ExitStatus(termination)
    guard isOnCopy else {
      environment.report(failure)
      return status
    }
    throw CommandError(
      cannot: "change \(file)", because: "\(failure); \(file) is unchanged", status: status)
  }

  /// Runs the command to its end.
  ///
  /// Signals that would end this process are passed on to the command, so that nothing is released
  /// before the command has ended. A command that works on the file itself inherits the lock, and
  /// so keeps it when this process is killed or stopped. If the lock is taken over, the command
  /// gets SIGTERM.
  ///
  /// - Returns: how the command ended, and the error if the lock was taken over before that.
  /// - Throws: `LostBeforeStart` if it was taken over before the command was started.
  func end(
    of command: ExternalCommand, _ path: String, _ access: ItemAccess
  ) throws -> (Termination, WormholeError?) {
    // Received from before the start of the command: a signal that arrives meanwhile is not lost.
    let interruption = try Interruption(quits: true, adopts: true)
    // A process that was stopped until now may have lost the lock, and there was no command to end then.
    if let loss = try access.loss() { throw LostBeforeStart(error: loss) }
    if let grace { try reporting(cannot: "keep \(file)", access.entry?.wish(grace: grace)) }
    do {
      let inherited = isOnCopy ? nil : try access.inheritance
      let child = try command.start(
        variables: [Self.fileVariable: path], inheriting: inherited?.descriptor,
        endsWithParent: isOnCopy)
      var loss: WormholeError?
      do {
        if inherited != nil { try access.entry?.handOn(toProcess: child.processID) }
      } catch let error as WormholeError {
        // The command was killed before the takeover, or the takeover was just before its start:
        // then nothing else ends it.
        loss = error
        try child.send(.kill)
      } catch {
        // Others cannot read the command's process number; the inherited lock still excludes them.
        environment.report("\(error)")
      }
      var renewal = ContinuousClock.now + Self.renewalInterval
      let work = inherited.map { CommandWork.heirs($0.file) }
      let termination = try child.waitForEnd(interruption, work: work ?? .tree) {
        guard loss == nil else { return false }
        // After an error, such as no descriptors, the command continues; its end is the next check.
        loss = try? checked(access, &renewal, process: child.processID)
        return loss != nil
      }.termination
      // A command that works on the file itself had it to its end, unless a takeover killed it.
      if loss == nil, isOnCopy || termination == .killed(signal: Signal.kill.rawValue) {
        loss = try isOnCopy ? access.loss() : access.lossOfKilled()
      }
      return (termination, loss)
    } catch let error as Errno {
      throw command.error(error)
    }
  }

  /// Shows others that the holder lives, and checks whether the access was taken over.
  private func checked(
    _ access: ItemAccess, _ renewal: inout ContinuousClock.Instant, process: Int32
  ) throws -> WormholeError? {
    if let loss = try access.loss() { return loss }
    if isOnCopy { try access.entry?.follow(process) }
    if term == nil, .now >= renewal {
      renewal = .now + Self.renewalInterval
      try access.renew()
    }
    return nil
  }

  private func taken(_ loss: WormholeError) -> String { loss.takeover ?? loss.reason }

  /// An error of the coordination, with this command's options as remedies.
  private func commandError(_ error: WormholeError) -> CommandError {
    if error.code == .overtaken, !isOnCopy {
      return CommandError(
        cannot: "keep \(file)", because: taken(error), status: ExitStatus(of: error))
    }
    let reason = error.reason + (error.remedy.map { "; \($0)" } ?? "")
    if error.code == .timedOut { return wait.conflict(file, heldBy: error.holder, reason) }
    return CommandError(
      cannot: "\(isOnCopy ? "change" : "lock") \(file)", because: reason,
      status: ExitStatus(of: error))
  }
}
