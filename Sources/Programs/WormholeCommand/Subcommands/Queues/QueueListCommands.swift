import FoundationEssentials
import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeTerminals

extension CommandDescription {
  static let queueList = CommandDescription(
    name: "list",
    abstract: "Show the queues, the entries of one, or one entry.",
    discussion: """
      Of a queue all entries are shown that are taken or wait, those that have failed and were kept, and \
      those whose file is damaged, in this order; nothing is taken. The id in the table is a short one, which the other commands take, \
      too. The exit status is 1 if there is nothing to show. With --json each has a line: {"due": ..., "id": ..., "key": ..., \
      "reason": ..., "sender": ..., "sent": ..., "status": ..., "value": ...}, without \
      what it does not have. The status is 'taken', 'waiting', 'failed' or 'unreadable'; 'expired' if no consumer has \
      ended the entry yet. What a 'queue take' had that has ended waits: the next one gets it first.

      With an ID that entry is shown, and if 'queue take --run' has run it, the end of each attempt that is kept, with \
      what it printed. One whose process was killed has none. With --json these are "results": [{"attempt": ..., \
      "began": ..., "ended": ..., "exit": ..., "id": ..., "output": ..., "reason": ..., "value": ...}, ...]. With \
      --ended a list shows the commands that have ended, instead of what waits. With --next it shows the entries \
      that are due, in the order in which they are to be delivered.
      """,
    arguments: [
      .optional(
        "name", .live(.queue), help: "The name of a queue; without it, the queues are shown."),
      .optional("id", .identifier, help: "The id that 'queue put' or 'queue list' printed."),
      .flag(
        "ended",
        help: "Show the commands that 'queue take --run' has run to an end, without kept failures."),
      .flag("next", help: "Show what the next 'queue take' gets."),
      .value("count", .count, help: "With --next, show so many; by default one."),
      .jsonLines,
    ]
  ) { arguments, environment in
    guard let name = arguments.text("name") else {
      let scope = ReportScope(.names, keeps: { _ in false })
      let report = try arguments.container.openExisting()?.report(scope)
      return try environment.print(report?.names.queues ?? [], arguments)
    }
    guard let queue = try arguments.container.openExisting()?.queue(name) else {
      throw ExitStatus.no
    }
    if arguments.has("next") {
      let due = try queue.due(arguments.count("count") ?? 1).map(ListedEntry.init)
      return try environment.print(due, arguments)
    }
    guard arguments.has("ended") || arguments.text("id") != nil else {
      return try environment.printList(arguments) { try queue.forEachShown($0) }
    }
    let results = try JobResults(of: queue).all()
    guard let text = arguments.text("id") else {
      var present: Set<QueueEntryID> = []
      try queue.forEachShown { present.insert($0.id) }
      let ended = results.compactMap(ListedEntry.init).filter { !present.contains($0.id) }.latest
      return try environment.print(ended, arguments)
    }
    let ended = results.compactMap(ListedEntry.init).latest
    let id = try queue.entryID(text, among: ended.map(\.id))
    var found: ListedEntry?
    try queue.forEachShown { if $0.id == id { found = found ?? $0 } }
    guard let entry = found ?? ended.first(where: { $0.id == id }) else {
      throw CommandError.no("show \(text.quoted)", because: "there is no entry with this id")
    }
    try environment.print(entry, arguments, results.filter { $0.id == entry.id.description })
  }
  .refusing { arguments in
    if arguments.isGiven("count"), !arguments.has("next") { return "--count needs --next" }
    if let conflict = arguments.conflict(of: "ended", "next") { return conflict }
    guard let flag = ["ended", "next"].first(where: arguments.has) else { return nil }
    return arguments.text("name") == nil
      ? "--\(flag) needs the name of a queue"
      : arguments.text("id") != nil ? "--\(flag) and an id exclude each other" : nil
  }
}

extension CommandEnvironment {
  /// Prints an entry, and how each attempt to run it has ended.
  fileprivate func print(
    _ entry: ListedEntry, _ arguments: ParsedArguments, _ results: [JobResult]
  ) throws {
    guard !arguments.has("json") else {
      var line = entry.object
      line["results"] = results.isEmpty ? nil : results
      return try print(json: line)
    }
    func line(_ label: String, _ text: String) throws {
      try print(line: "  " + label.padded(to: 10) + " " + text.onOneLine)
    }
    try print(line: entry.id.description.onOneLine)
    if let job = entry.value.flatMap(Job.init) {
      try line("command", job.line)
      try line("directory", job.directory)
      for (name, value) in job.variables.sorted(by: { $0.key < $1.key }) {
        try line("variable", "\(name)=\(value.quotedForShell)")
      }
    } else {
      try line("value", entry.valueText)
    }
    try line("sent", "\(entry.id.sent.secondsText) from \(entry.id.sender)")
    try line("status", entry.status)
    var next = 1
    for result in results {
      let last = result.attempt - 1
      if next == last {
        try line("attempt \(next)", "no result is kept, as when its process was killed")
      } else if next < last {
        try line(
          "attempts", "\(next) to \(last): no result is kept, as when their processes were killed")
      }
      next = result.attempt + 1
      let times = "\(result.began.secondsText) to \(result.ended.secondsText)"
      try line("attempt \(result.attempt)", "\(times): \(result.sentence)")
      // As the program has printed it, unless that could control the terminal.
      let output =
        isTerminal
        ? result.output.split(separator: "\t", omittingEmptySubsequences: false)
          .map { String($0).withoutControlCharacters }.joined(separator: "\t") : result.output
      try print(output.isEmpty || output.hasSuffix("\n") ? output : output + "\n")
    }
  }
}

extension Queue {
  /// The first entries that wait and are due, in the order in which they are to be delivered.
  fileprivate func due(_ count: Int) throws -> [QueueReceipt] {
    // A delayed entry has its place among the entries that are due, so one look may find too few.
    var limit = count
    while true {
      let found = try listed(limit: limit).filter { $0.status == .stored }
      let due = found.filter { !$0.hasExpired && ($0.id.due ?? .distantPast) <= Date() }
      if due.count >= count || found.count < limit { return Array(due.prefix(count)) }
      limit = limit > .max / 2 ? .max : limit * 2
    }
  }

  /// Calls a closure with the entries that are taken, wait, have failed and were kept, or cannot be read.
  fileprivate func forEachShown(_ body: (ListedEntry) throws -> Void) throws {
    let unreadable = try forEachListed { (entry: QueueReceipt) in try body(ListedEntry(entry)) }
    for failure in try failures() { try body(ListedEntry(failure)) }
    for entry in unreadable { try body(ListedEntry(unreadable: entry.id, reason: entry.reason)) }
  }
}

extension [ListedEntry] {
  /// The last one with each id.
  fileprivate var latest: [ListedEntry] {
    var last: [QueueEntryID: Int] = [:]
    for (index, entry) in enumerated() { last[entry.id] = index }
    return indices.filter { last[self[$0].id] == $0 }.map { self[$0] }
  }
}

/// An entry in a list: it waits, is taken, has failed, has ended, or cannot be read. Its text is made
/// when it is printed, because there may be a million of them.
private struct ListedEntry: Listed {
  static let head = ["ENTRY", "FROM", "SENT", "STATUS", "VALUE"]
  static let dates = JSONDates.exact

  let id: QueueEntryID
  private(set) var value: PropertyListValue?
  private let word: String
  private var reason: String?
  private var due: Date?
  private var key: String?
  /// The end of a command.
  private var result: JobResult?

  init(_ entry: QueueReceipt) {
    (id, value) = (entry.id, entry.payload)
    (due, key) = (entry.id.due, entry.key)
    word = (entry.hasExpired ? .expired : entry.status).word
  }

  init(_ failure: QueueFailure) {
    (id, value) = (failure.id, failure.payload)
    (word, reason) = ("failed", failure.reason)
  }

  /// Nil for one with a wrong id that another program has written.
  init?(_ result: JobResult) {
    guard let id = QueueEntryID(result.id) else { return nil }
    (self.id, value, self.result) = (id, result.job.value, result)
    (word, reason) = ("ended", result.reason)
  }

  init(unreadable id: QueueEntryID, reason: String) {
    self.id = id
    (word, self.reason) = ("unreadable", reason)
  }

  var object: JSONObject {
    [
      "due": due, "id": id.description, "key": key, "reason": reason, "sender": id.sender,
      "sent": id.sent, "status": word, "value": value,
    ]
  }

  func encode(to encoder: any Encoder) throws { try object.encode(to: encoder) }

  var status: String {
    if let result { return "\(result.sentence), \(result.ended.secondsText)" }
    if let reason { return (word == "failed" ? "failed: " : "cannot be read: ") + reason }
    let due = word == QueueEntryStatus.stored.word ? due : nil
    return word + (due.map { ", due \($0.secondsText)" } ?? "")
      + (key.map { ", key \($0.quoted)" } ?? "")
  }

  var cells: [String] { [id.shortText, id.sender, id.sent.secondsText, status, valueText] }

  /// A command is shown as it would be typed.
  var valueText: String {
    guard let value else { return "-" }
    return Job(value)?.line.shortened ?? value.shortText() ?? "(too large)"
  }
}
