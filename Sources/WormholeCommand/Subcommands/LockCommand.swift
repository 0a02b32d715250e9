import AppGroup
import FileCoordination
import FoundationEssentials

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

      The exit status is the command's; 126 and 127 when it cannot be run, 128 and the signal's \
      number when it was killed. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to it.

      A command that works on the file itself has the lock as long as it runs, and so has what it \
      starts, also when this program is killed or stopped: they inherit it as descriptor 10. When the \
      command is stopped, others may take the lock away after 50 milliseconds, and they may when it \
      takes longer than an hour; they kill the command first. A command that works on {} is killed with this program, and nothing is \
      published; when this program is stopped, others may go on after 50 milliseconds, and it ends \
      the command (SIGTERM) when it is continued.
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

  private static let standardTimeout: Duration = .seconds(60)

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let timeout = arguments.seconds("timeout") ?? Self.standardTimeout
    let file = arguments.requiredText("file")
    let words = arguments.tail ?? []
    let isShared = arguments.has("shared")
    let hasPlaceholder = words.contains { $0.contains(LockedWork.placeholder) }
    let work = LockedWork(
      file: file, words: words, isOnCopy: hasPlaceholder && !isShared,
      isImpatient: timeout == .zero, environment: environment)
    // The command may change to another directory before it looks for the file.
    let url = URL(filePath: try WorkingDirectory.absolute(file, to: "lock"))
    do {
      return try Self.hold(url, isShared: isShared, until: .now + timeout, work)
    } catch let error as FileCoordinationError {
      throw work.commandError(error)
    }
  }

  private static func hold(
    _ url: URL, isShared: Bool, until deadline: ContinuousClock.Instant, _ work: LockedWork
  ) throws -> ExitStatus {
    let coordinator = FileCoordinator()
    let term = LeaseDeclaration.longestTerm
    let hold: () throws -> ExitStatus = {
      work.isOnCopy
        ? try coordinator.hold(copyOfItemAt: url, until: deadline, term: term, while: work.run)
        : try coordinator.hold(
          itemAt: url, isShared: isShared, until: deadline, term: term, while: work.run)
    }
    guard work.isImpatient else { return try hold() }
    // Not to wait for who has the file is no reason to leave those who show it no time to answer.
    return try coordinator.prepare(
      forReadingItemsAt: isShared ? [url] : [], writingItemsAt: isShared ? [] : [url]
    ) { completion in
      defer { completion() }
      return try hold()
    }
  }
}
