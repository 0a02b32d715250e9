import AppGroup
import Dispatch
import GroupDefaults
import PropertyLists

struct DefaultsWatchCommand: Subcommand {
  static let description = CommandDescription(
    name: "watch",
    abstract: "Print the changes of the defaults, one line for each key.",
    discussion: """
      A line is {"key": ..., "new": ..., "old": ...}; without "old" the key is new, without "new" \
      it was removed. The command prints 'listening' on standard error; from then on it misses \
      nothing. After a burst of changes the last state is always printed, the earlier ones perhaps.
      """,
    positionals: [
      PositionalDescription(
        name: "key", help: "The key to watch; without it, all keys.", isOptional: true)
    ],
    options: [.suite, .count, .timeout])

  static let commandPath = ["defaults", "watch"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let deadline = arguments.deadline()
    guard let opened = try arguments.container.openToListen(until: deadline, environment) else {
      return .deadline
    }
    let defaults = GroupDefaults(suite: arguments.text("suite"), in: opened.container)
    let backlog = Backlog<Change>(joining: Change.join)
    defaults.onError = { environment.tell($0) }
    let observation = try defaults.observe(
      key: arguments.text("key"), startsWithCurrent: opened.isNew,
      on: DispatchQueue(label: "wormhole.watch")
    ) { backlog.add(Change(key: $0.key, old: $0.oldValue, new: $0.newValue)) }
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

/// A change of a key, from the value that was printed last to the latest one.
private struct Change: Sendable {
  let key: String
  let old: PropertyListValue?
  var new: PropertyListValue?

  /// Several changes of one key become one: a slow reader of our output costs no more memory than the
  /// defaults themselves.
  @Sendable static func join(_ waiting: inout [Change], _ change: Change) {
    guard let index = waiting.firstIndex(where: { $0.key == change.key }) else {
      return waiting.append(change)
    }
    waiting[index].new = change.new
    // The key has the value again that was printed last: nothing is left to print.
    if waiting[index].old == waiting[index].new { waiting.remove(at: index) }
  }

  var line: PropertyListValue { .object(["key": .string(key), "old": old, "new": new]) }
}
