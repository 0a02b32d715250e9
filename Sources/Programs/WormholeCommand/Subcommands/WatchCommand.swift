import FileCoordination
import SystemCalls

struct WatchCommand: Subcommand {
  static let description = CommandDescription(
    name: "watch",
    abstract: "Print the events of a file or directory, one line each.",
    discussion: """
      The lines are the events of a file presenter:
      'changed': content or attributes changed, or the item appeared or is gone
      'moved PATH': the item is at PATH now
      'relinquish reader': a coordinated reader is about to use the item
      'reacquire reader': and has ended
      'relinquish writer': a coordinated writer is about to use the item
      'reacquire writer': and has ended
      'save': write what is not written yet
      'deleting': a coordinated writer is about to delete or replace the item

      For a directory there are also 'appeared PATH', 'changed PATH', 'deleting PATH' and 'moved \
      PATH<tab>PATH', at any depth, with paths relative to it.

      Changes by any program are noticed; several may be printed as one 'changed'. The command prints \
      'listening' on standard error; from then on it misses nothing. It delays nobody: it answers \
      every question at once.
      """,
    positionals: [
      PositionalDescription(
        name: "file", help: "A file or directory; it need not exist yet.", kind: .file)
    ],
    options: [
      .count, .timeout,
      .flag("json", help: "Print lines of JSON: {\"event\": ..., \"subitem\": ..., \"to\": ...}."),
    ],
    needsContainer: false)

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let deadline = arguments.deadline()
    let file = arguments.requiredText("file")
    let backlog = PresenterEvent.backlog()
    let presenter: PrintingPresenter
    do throws(Errno) {
      presenter = try PrintingPresenter(file, backlog)
    } catch {
      throw CommandError(
        verb: "watch", object: file, reason: "\(error)",
        status: error == .accessDenied ? .permission : .inputOutput)
    }
    try FileCoordinator.addFilePresenter(presenter)
    defer { FileCoordinator.removeFilePresenter(presenter) }
    environment.tellListening()
    var remaining = arguments.count("count") ?? .max
    while remaining > 0 {
      guard let event = backlog.next(until: deadline) else { return .deadline }
      try environment.print(
        line: arguments.has("json") ? JSONWriter.string(event.propertyList) : event.line)
      remaining -= 1
    }
    return .done
  }
}
