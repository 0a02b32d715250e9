import FileCoordination
import SystemCalls

struct WatchCommand: Subcommand {
  static let description = CommandDescription(
    name: "watch",
    abstract: "Print what happens to a file or directory, a line each.",
    discussion: """
      The lines say what a file presenter is told. 'changed': content or attributes, or it appeared \
      or is gone. 'moved PATH': it is there now. 'relinquish reader' and 'relinquish writer': \
      somebody who coordinates is about to use it; 'reacquire reader' and 'reacquire writer': has \
      ended. 'save': write what is not written yet. 'deleting': somebody who coordinates is about \
      to delete or replace it. Of a directory also 'appeared PATH', 'changed PATH', 'deleting PATH' \
      and 'moved PATH<tab>PATH', at any depth, with paths within it.

      Changes are noticed whoever makes them; several may be printed as one 'changed'. The command \
      says 'listening' on standard error once it cannot miss anything any more. It is in nobody's \
      way: it answers everything at once.
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
    let deadline = arguments.seconds("timeout").map { ContinuousClock.now + $0 }
    let file = arguments.requiredText("file")
    let backlog = PresenterBacklog()
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
    return try print(
      backlog, count: arguments.count("count") ?? .max, until: deadline,
      asJSON: arguments.has("json"), environment)
  }

  private func print(
    _ backlog: PresenterBacklog, count: Int, until deadline: ContinuousClock.Instant?,
    asJSON: Bool, _ environment: CommandEnvironment
  ) throws -> ExitStatus {
    var remaining = count
    while remaining > 0 {
      let events = backlog.take(until: deadline)
      guard !events.isEmpty else { return .deadline }
      for event in events.prefix(remaining) {
        try environment.print(
          line: asJSON ? try JSONWriter.string(event.propertyList) : event.line)
        remaining -= 1
      }
    }
    return .done
  }
}
