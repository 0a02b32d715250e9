import FoundationEssentials
import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeWorkshop

extension CommandDescription {
  static let names = CommandDescription(
    name: "ls",
    abstract: "Print the names in the container, one line each.",
    discussion: """
      A line has the kind and the name; with one kind in --only, the name alone. Kinds: 'message', \
      'notification', 'queue', 'log', 'presence' and 'peer'. A message that was cleared, and a presence \
      under which nobody is, are left out, unless --all is given. A pattern is one of a shell: '*' stands \
      for any text, '?' for one character, '[a-z]' for one of some. The exit status is 1 if there is no \
      such name.
      """,
    positionals: [.namePatterns],
    options: [
      .value(
        "only", "kind,...", .choices(LiveNames.ofContainers.map(\.rawValue)),
        help: "Print only these kinds."),
      .flag("all", help: "Print also names that have nothing at present."),
      .flag("json", help: "Print lines of JSON: {\"kind\": ..., \"name\": ...}."),
    ]
  ) { arguments, environment in
    let only = arguments.text("only").map { Set(ValueKind.list($0)) }
    let patterns = arguments.texts("pattern").map { ShellPattern($0) }
    guard let container = try arguments.container.openExisting() else { throw ExitStatus.no }
    var isEmpty = true
    for kind in LiveNames.ofContainers where only?.contains(kind.rawValue) != false {
      for name in try kind.names(in: container)
      where try (patterns.isEmpty || patterns.contains { $0.matches(name) })
        && (arguments.has("all") || kind.hasContent(name, in: container))
      {
        isEmpty = false
        let padding = String(repeating: " ", count: 14 - kind.rawValue.count)
        try environment.print(
          line: arguments.has("json")
            ? JSONWriter.string(.object(["kind": kind.rawValue, "name": name]))
            : (only?.count == 1 ? "" : kind.rawValue + padding) + name.onOneLine)
      }
    }
    if isEmpty { throw ExitStatus.no }
  }

  static let stat = CommandDescription(
    name: "stat",
    abstract: "Show all that is known under a name; exit status 1 if that is nothing.",
    discussion: """
      A name may be that of a message, a notification, a queue, a log and a presence at the same time. \
      The version of a message changes with every change; 'send --if-version' and 'clear --if-version' \
      compare it. With --json a line is {"log": ..., "message": {"bytes": ..., "expires": ..., "path": \
      ..., "problem": ..., "publisher": ..., "version": ...}, "name": ..., "notification": {"state": \
      ...}, "presence": [...], "queue": ...}, without what there is not.
      """,
    positionals: [
      PositionalDescription(
        name: "name", help: "The names; any text.", kind: .live(.message), isRepeating: true)
    ],
    options: [.flag("json", help: "Print a line of JSON for each instead of text for people.")]
  ) { arguments, environment in
    guard let container = try arguments.container.openExisting() else { throw ExitStatus.no }
    var status = ExitStatus.done
    var report: ContainerReport?
    for name in arguments.texts("name") {
      let known = try KnownUnderName(name, in: container, &report)
      if known.isNothing {
        environment.tell("nothing is known as \(name.quoted)")
        status = .no
      } else if arguments.has("json") {
        try environment.print(json: known.propertyList)
      } else {
        try environment.print(known.text(columns: environment.columns))
      }
    }
    try status.end()
  }
}

extension LiveNames {
  /// Whether there is something under a name at present: a message may be cleared, and a presence may have
  /// no process.
  fileprivate func hasContent(_ name: String, in container: SharedContainer) throws -> Bool {
    switch self {
    case .message: try container.value(name).version() != nil
    case .presence: try !container.presence(name).members().isEmpty
    default: true
    }
  }
}

/// What `stat` shows.
private struct KnownUnderName {
  private let name: String
  private var message: PropertyListValue?
  private var state: UInt64?
  private var queue: ContainerReport.NamedQueue?
  private var log: ContainerReport.NamedLog?
  private let members: [PresenceMember]
  private var lines: [(label: String, text: String)] = []
  private static let place = "place"

  /// - Parameter report: made once, when something needs it.
  init(_ name: String, in container: SharedContainer, _ report: inout ContainerReport?) throws {
    self.name = name
    members = try container.presence(name).members()
    try look(at: container.value(name))
    let isName: (String) -> Bool = { $0.utf8.elementsEqual(name.utf8) }
    if try container.notificationNames().contains(where: isName) {
      let state = try container.notification(name).state()
      self.state = state
      lines.append(("notification", "state \(state)"))
    }
    let isQueue = try container.queueNames().contains(where: isName)
    let isLog = try !container.isOnEtcd && container.logNames().contains(where: isName)
    if isQueue || isLog, report == nil { report = try container.report() }
    if isQueue, let queue = report?.names.queues.first(where: { isName($0.name) }) {
      self.queue = queue
      lines.append(("queue", "\(queue.waitingText), taken by \(queue.consumersText)"))
    }
    if isLog, let log = report?.names.logs.first(where: { isName($0.name) }) {
      self.log = log
      lines.append(("log", "\(log.messagesText), read by \(log.subscribersText)"))
    }
    lines += members.map { ("presence", $0.sinceText) }
  }

  private mutating func look(at value: Value) throws {
    let snapshot = try value.snapshot()
    guard let version = snapshot.version else { return }
    var bytes: Int?
    var problem: String?
    do {
      bytes = try snapshot.bytes()?.count
      _ = try snapshot.propertyList()
    } catch let error as AppGroupError {
      problem = error.briefReason
    }
    message = .object([
      "bytes": bytes, "expires": snapshot.expiration, "path": value.path, "problem": problem,
      "publisher": snapshot.publisher?.propertyList, "version": version.text,
    ])
    let publisher = snapshot.publisher.map { ", sent \($0.date.secondsText) by \($0)" } ?? ""
    let size = bytes.map { Int64($0).sizeText } ?? "of unknown size"
    lines.append(("message", problem.map { "cannot be read: \($0)" } ?? size + publisher))
    if let expiration = snapshot.expiration { lines.append(("expires", expiration.secondsText)) }
    lines += [("version", version.text), (Self.place, value.path)]
  }

  var isNothing: Bool { lines.isEmpty }

  /// Keys are only ever added.
  var propertyList: PropertyListValue {
    .object([
      "name": name, "message": message,
      "notification": state.map { PropertyListValue.dictionary(["state": PropertyListValue($0)]) },
      "queue": queue?.propertyList, "log": log?.propertyList,
      "presence": members.isEmpty ? nil : PropertyListValue.array(members.map(\.propertyList)),
    ])
  }

  func text(columns: Int) -> String {
    let indent = 16
    return lines.reduce(name.onOneLine + "\n") { text, line in
      let label = "  " + line.label
      let lead = label + String(repeating: " ", count: max(1, indent - label.count))
      // A path is copied, so it stays in one piece.
      let isPath = line.label == Self.place
      return text + lead
        + (isPath
          ? line.text.onOneLine
          : TextWrapping.wrap(
            line.text.onOneLine, columns: columns, indent: indent, firstIndent: indent)) + "\n"
    }
  }
}

extension PositionalDescription {
  static let namePatterns = PositionalDescription(
    name: "pattern", help: "Print only names that match one of these.", isOptional: true,
    isRepeating: true)
}
