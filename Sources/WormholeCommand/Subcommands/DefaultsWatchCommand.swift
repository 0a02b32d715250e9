import AppGroup
import Dispatch
import GroupDefaults
import PropertyLists

struct DefaultsWatchCommand: Subcommand {
  static let description = CommandDescription(
    name: "watch",
    abstract: "Print what changes in the defaults, a line for each key.",
    discussion: """
      A line is {"key": ..., "new": ..., "old": ...}; without "old" the key is new, without "new" \
      it was removed. The command says 'listening' on standard error once it cannot miss anything \
      any more. Of a burst of changes the last state is always printed, those before it perhaps.
      """,
    positionals: [
      PositionalDescription(
        name: "key", help: "The only key to watch; without it, all are.", isOptional: true)
    ],
    options: [.suite, .count, .timeout])

  static let commandPath = ["defaults", "watch"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let deadline = arguments.seconds("timeout").map { ContinuousClock.now + $0 }
    guard let opened = try arguments.container.openToListen(until: deadline, environment) else {
      return .deadline
    }
    let defaults = GroupDefaults(container: opened.container, suite: arguments.text("suite"))
    let backlog = DefaultsBacklog()
    defaults.onError = { environment.tell($0) }
    let observation = try defaults.observe(
      key: arguments.text("key"), startsWithCurrent: opened.isNew,
      on: DispatchQueue(label: "wormhole.watch")
    ) { backlog.add($0) }
    environment.tellIfPolling(observation.detection, "the defaults")
    if !opened.isNew { environment.tellListening() }
    return try withExtendedLifetime(observation) {
      var remaining = arguments.count("count") ?? .max
      while remaining > 0 {
        guard let change = backlog.next(until: deadline) else { return .deadline }
        try environment.print(line: JSONWriter.string(change.line))
        remaining -= 1
      }
      return .done
    }
  }
}

extension DefaultsBacklog.Change {
  fileprivate var line: PropertyListValue {
    .object(["key": .string(key), "old": old, "new": new])
  }
}
