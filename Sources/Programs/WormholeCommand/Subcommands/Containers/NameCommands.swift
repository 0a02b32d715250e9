import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeTerminals

extension CommandDescription {
  static let names = CommandDescription(
    name: "ls",
    abstract: "Print the names in the container, one line each, or all that is known of each.",
    discussion: """
      A line has the kind and the name; with one kind in --only, the name alone. Kinds: 'value', \
      'notification', 'queue', 'log', 'presence' and 'peer'. A value or notification that was removed, and a \
      presence under which nobody is, are left out, unless --all is given. A pattern is one of a shell: '*' stands \
      for any text, '?' for one character, '[a-z]' for one of some. The exit status is 1 if there is no \
      such name, and 65 if one cannot be looked at: the others are printed, and it is reported at the end.

      With -l all that is known under each name is shown, of whatever kinds. The version of a value changes \
      with every change; 'send --if-version' and 'remove --if-version' compare it. With --json, too, a line is \
      {"log": ..., "message": {"bytes": ..., "expires": ..., "path": ..., "problem": ..., "publisher": ..., \
      "version": ...}, "name": ..., "notification": {"state": ...}, "presence": [...], "queue": ...}, without \
      what there is not.

      With --groups the groups that have a container are printed; with --json {"container": ..., "group": ...}. \
      The first write to a group makes its container, in $XDG_DATA_HOME/app-groups, by default \
      ~/.local/share/app-groups. The group file-coordination is the user's own: file presenters register there.
      """,
    arguments: [
      .namePatterns,
      .value(
        "only", .choices(LiveNames.ofContainers.map(\.rawValue)), named: "kind,...",
        help: "Print only these kinds."),
      .flag("all", help: "Print also names that have nothing at present."),
      .flag("long", letter: "l", help: "Print all that is known under each name."),
      .flag("groups", help: "Print the names of all groups that have a container."),
      .flag("json", help: "Print lines of JSON: {\"kind\": ..., \"name\": ...}."),
    ],
    flagWithoutContainer: "groups"
  ) { arguments, environment in
    guard !arguments.has("groups") else { return try environment.printGroups(arguments) }
    let filter = NameFilter(arguments)
    guard let container = try arguments.container.openExisting() else { throw ExitStatus.no }
    var known: [(kind: LiveNames, name: String)] = []
    var faults = NameFaults()
    for kind in LiveNames.ofContainers where filter.passes(kind: kind.rawValue) {
      for name in try kind.names(in: container, &faults) where filter.passes(name) {
        // The name is there, even if it cannot be looked at.
        let isListed = try faults.attempt("look at a name", path: container.location) {
          try arguments.has("all") || kind.hasContent(name, in: container)
        }
        guard isListed != false else { continue }
        known.append((kind, name))
        guard !arguments.has("long") else { continue }
        try environment.print(
          arguments, json: .object(["kind": kind.rawValue, "name": name]),
          text: (filter.kinds.count == 1 ? "" : kind.rawValue.padded(to: 14)) + name.onOneLine)
      }
    }
    if arguments.has("long") {
      let report = try container.report(.nothing)
      // Names are compared byte by byte.
      let names = Dictionary(grouping: known) { Array($0.name.utf8) }
      for (bytes, some) in names.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
        let (name, kinds) = (String(decoding: bytes, as: UTF8.self), Set(some.map(\.kind)))
        let shown = try faults.attempt("look at a name", path: container.location) {
          try KnownUnderName(name, kinds, in: container, report)
        }
        guard let shown else { continue }
        if arguments.has("json") {
          try environment.print(json: .object(shown.members))
        } else {
          try environment.print(shown.text(name, columns: environment.columns))
        }
      }
    }
    try environment.end(faults, otherwise: known.isEmpty ? .no : .done)
  }
  .refusing { arguments in
    guard arguments.has("groups") else { return nil }
    return ["pattern", "only", "all", "long"].first(where: arguments.isGiven)
      .map { "--groups and \($0 == "pattern" ? "a pattern" : "--" + $0) exclude each other" }
  }
}

extension CommandEnvironment {
  fileprivate func printGroups(_ arguments: ParsedArguments) throws {
    let groups = try ContainerLocation.groups()
    guard !groups.isEmpty else { throw ExitStatus.no }
    for (group, path) in groups {
      try print(
        arguments, json: .object(["container": path, "group": group]), text: group.onOneLine)
    }
  }
}

extension LiveNames {
  /// Whether a name has content now: a value may be removed, and a presence may have no process.
  fileprivate func hasContent(_ name: String, in container: SharedContainer) throws -> Bool {
    switch self {
    case .value: try container.value(name).version() != nil
    case .notification: try container.notification(name).isUsed()
    case .presence: try !container.presence(name).members().isEmpty
    default: true
    }
  }
}

/// Everything known under a name.
private struct KnownUnderName {
  private(set) var members: [String: any JSONMember] = [:]
  private(set) var lines: [(label: String, text: String)] = []
  private static let place = "place"

  init(
    _ name: String, _ kinds: Set<LiveNames>, in container: SharedContainer,
    _ report: ContainerReport
  ) throws {
    let isName: (String) -> Bool = { $0.utf8.elementsEqual(name.utf8) }
    if kinds.contains(.value) { try look(at: container.value(name)) }
    if kinds.contains(.notification) {
      let state = try container.notification(name).state()
      members["notification"] = PropertyListValue.dictionary(["state": PropertyListValue(state)])
      lines.append(("notification", "state \(state)"))
    }
    if kinds.contains(.queue), let queue = report.names.queues.first(where: { isName($0.name) }) {
      members["queue"] = queue
      lines.append(("queue", "\(queue.waitingText), taken by \(queue.consumersText)"))
    }
    if kinds.contains(.log), let log = report.names.logs.first(where: { isName($0.name) }) {
      members["log"] = log
      lines.append(("log", "\(log.messagesText), read by \(log.subscribersText)"))
    }
    let processes = kinds.contains(.presence) ? try container.presence(name).members() : []
    if !processes.isEmpty { members["presence"] = processes }
    lines += processes.map { ("presence", $0.sinceText) }
    if kinds.contains(.peer) { lines.append(("peer", "see '\(ProgramName.called) peer list'")) }
    members["name"] = name
  }

  private mutating func look(at value: PlainValue) throws {
    let snapshot = try value.snapshot()
    guard let version = snapshot.version else { return }
    var bytes: Int?
    var problem: String?
    do {
      bytes = try snapshot.bytes()?.count
      _ = try snapshot.propertyList()
    } catch let error as WormholeError {
      problem = error.briefReason
    }
    members["value"] = PropertyListValue.object([
      "bytes": bytes, "expires": snapshot.expiration, "path": value.path, "problem": problem,
      "publisher": snapshot.publisher, "version": version.text,
    ])
    let publisher = snapshot.publisher.map { ", sent \($0.date.secondsText) by \($0)" } ?? ""
    let size = bytes.map { Int64($0).sizeText } ?? "of unknown size"
    lines.append(("value", problem.map { "cannot be read: \($0)" } ?? size + publisher))
    if let expiration = snapshot.expiration { lines.append(("expires", expiration.secondsText)) }
    lines += [("version", version.text), (Self.place, value.path)]
  }

  func text(_ name: String, columns: Int) -> String {
    lines.reduce(name.onOneLine + "\n") { text, line in
      let lead = ("  " + line.label).padded(to: 16)
      // A path is copied, so it stays in one piece.
      let columns = line.label == Self.place ? .max : columns
      return text + TextWrapping.wrap(line.text.onOneLine, columns: columns, after: lead) + "\n"
    }
  }
}

/// The names that `ls` and `monitor` print.
struct NameFilter {
  private let patterns: [ShellPattern]
  private let exceptions: [ShellPattern]
  /// Empty for all kinds.
  let kinds: Set<String>

  init(_ arguments: ParsedArguments) {
    patterns = arguments.texts("pattern").map { ShellPattern($0) }
    exceptions = arguments.texts("except").map { ShellPattern($0) }
    kinds = Set(arguments.text("only").map(ValueKind.list) ?? [])
  }

  func passes(kind: String) -> Bool { kinds.isEmpty || kinds.contains(kind) }

  func passes(_ name: String) -> Bool {
    (patterns.isEmpty || patterns.contains { $0.matches(name) })
      && !exceptions.contains { $0.matches(name) }
  }
}

extension ArgumentDescription {
  static let namePatterns = list(
    "pattern", isOptional: true, help: "Print only names that match one of these.")
}
