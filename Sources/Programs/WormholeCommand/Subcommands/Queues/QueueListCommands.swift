import FoundationEssentials
import Wormhole
import WormholeInspection
import WormholePropertyLists

extension CommandDescription {
  static let queueList = CommandDescription(
    name: "list",
    abstract: "Show the queues, or the entries of one.",
    discussion: """
      Of a queue all entries are shown that are taken or wait, those that have failed and were kept, and \
      those whose file is damaged, in this order; nothing is taken. The id in the table is a short one, which the other commands take, \
      too. The exit status is 1 if there is nothing to show. With --json each has a line: {"due": ..., "id": ..., "key": ..., \
      "priority": ..., "reason": ..., "sender": ..., "sent": ..., "status": ..., "value": ...}, without \
      what it does not have. The status is 'taken', 'stored', 'failed' or 'unreadable'; 'expired' if no consumer has \
      ended the entry yet. What a 'queue take' had that has ended waits: the next one gets it first.
      """,
    arguments: [
      .optional(
        "name", .live(.queue), help: "The name of a queue; without it, the queues are shown."),
      .jsonLines,
    ]
  ) { arguments, environment in
    guard let name = arguments.text("name") else {
      let queues = try arguments.container.openExisting()?.report(.nothing).names.queues ?? []
      return try environment.print(queues, arguments, under: ["QUEUE", "WAITING", "TAKEN BY"]) {
        [$0.name, $0.waitingText, $0.consumersText]
      }
    }
    let queue = try arguments.container.openExisting()?.queue(name)
    let listed =
      try (queue?.listed() ?? []).map(ListedEntry.init)
      + (queue?.failures() ?? []).map(ListedEntry.init)
      + (queue?.unreadable() ?? []).map { ListedEntry(unreadable: $0.id, reason: $0.reason) }
    try environment.print(
      listed, arguments, under: ["ENTRY", "FROM", "SENT", "STATUS", "VALUE"], cells: \.cells)
  }

  static let queuePeek = CommandDescription(
    name: "peek",
    abstract: "Print the next entries of a queue, and take none; exit status 1 if there is none.",
    discussion: """
      These are the entries that wait and are due, in the order in which they are to be delivered. With \
      --envelope a line is as of 'queue list --json'.
      """,
    arguments: [
      .queueName, .value("count", .count, standard: "1", help: "Print at most this many."),
      .flag("envelope", help: "Print each entry with its sender, id and time of sending."),
    ] + ArgumentDescription.output
  ) { arguments, environment in
    let count = arguments.count("count") ?? 1
    let queue = try arguments.existingQueue()
    // A delayed entry has its place among the entries that are due, so one look may find too few.
    var (limit, due) = (count, [QueueReceipt]())
    while let found = try queue?.listed(limit: limit).filter({ $0.status == .stored }) {
      due = found.filter { !$0.hasExpired && ($0.id.due ?? .distantPast) <= Date() }
      if due.count >= count || found.count < limit { break }
      limit = limit > .max / 2 ? .max : limit * 2
    }
    for entry in due.prefix(count) {
      try environment.print(
        arguments.bytes(
          arguments.has("envelope") ? entry.propertyList : entry.payload,
          of: "the entry \(entry.id)"))
    }
    if due.isEmpty { throw ExitStatus.no }
  }
}

/// An entry in a list: it waits, is taken, or has failed.
private struct ListedEntry: JSONObject {
  let propertyList: PropertyListValue
  let cells: [String]

  init(_ entry: QueueReceipt) {
    propertyList = entry.propertyList
    var status = entry.hasExpired ? "expired" : entry.status == .taken ? "taken" : "waits"
    if entry.status == .stored, let due = entry.id.due { status += ", due \(due.secondsText)" }
    if let priority = entry.id.priority.optionalWord { status += ", \(priority) priority" }
    if let key = entry.key { status += ", key \(key.quoted)" }
    cells = Self.cells(entry.id, status: status, entry.payload)
  }

  init(_ failure: QueueFailure) {
    propertyList = .object([
      "id": failure.id.description, "reason": failure.reason, "sender": failure.id.sender,
      "sent": failure.id.sent, "status": "failed", "value": failure.payload,
    ])
    cells = Self.cells(failure.id, status: "failed: \(failure.reason)", failure.payload)
  }

  init(unreadable id: QueueEntryID, reason: String) {
    propertyList = .object([
      "id": id.description, "reason": reason, "sender": id.sender, "sent": id.sent,
      "status": "unreadable",
    ])
    cells = Self.cells(id, status: "cannot be read: \(reason)", nil)
  }

  private static func cells(
    _ id: QueueEntryID, status: String, _ value: PropertyListValue?
  ) -> [String] {
    let text = value.map { $0.shortText() ?? "(too large)" } ?? "-"
    return [id.shortText, id.sender, id.sent.secondsText, status, text]
  }
}
