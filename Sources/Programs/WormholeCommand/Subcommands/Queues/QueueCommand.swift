import Wormhole
import WormholePropertyLists

extension CommandDescription {
  /// The commands for queues: entries that wait until somebody has handled them.
  static let queue = CommandDescription(
    name: "queue",
    abstract: "Put work into queues, and let any number of processes take it.",
    discussion: """
      An entry waits until a process takes it, and goes to one of those that take. It is delivered \
      again, marked, if that process ends before it has handled the entry. So no process can take an \
      entry and leave it to a later one to acknowledge it: 'queue take' keeps it for as long as its \
      COMMAND runs, and the end of COMMAND acknowledges or releases it.

      Queues work in a directory and on etcd. Those of peers have commands of their own: '\(ProgramName.called) help \
      peer'.
      """,
    subcommands: [
      .queuePut, .queueTake, .queuePeek, .queueList, .queueCancel, .queuePurge, .queueRetry,
      .queueForget,
    ], run: nil)
}

extension PositionalDescription {
  static let queueName = PositionalDescription(
    name: "name", help: "The name of the queue; any text.", kind: .live(.queue))

  /// - Parameter help: where the ids come from.
  static func entryIDs(_ help: String, isOptional: Bool = false) -> PositionalDescription {
    PositionalDescription(
      name: "id", help: help, kind: .identifier, isOptional: isOptional, isRepeating: true)
  }
}

extension ParsedArguments {
  /// The queue, without making anything; nil where there is no container.
  func existingQueue() throws -> Queue? {
    try container.openExisting()?.queue(requiredText("name"))
  }
}

extension QueueReceipt {
  /// Keys are only ever added.
  var propertyList: PropertyListValue {
    .object([
      "due": id.due, "id": id.description, "key": key, "priority": id.priority.optionalWord,
      "sender": id.sender, "sent": id.sent, "status": status.word, "value": payload,
    ])
  }
}

extension EntryPriority {
  /// For machines; the values are never changed.
  var word: String {
    switch self {
    case .high: "high"
    case .standard: "standard"
    case .low: "low"
    }
  }

  /// The same; nil for the standard one.
  var optionalWord: String? { self == .standard ? nil : word }
}
