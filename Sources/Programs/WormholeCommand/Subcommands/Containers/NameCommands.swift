import Wormhole
import WormholeInspection
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
      {"log": ..., "name": ..., "notification": ..., "presence": [...], "queue": ..., "value": ...}, without \
      what there is not; each is as in 'status --json'.

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
          arguments, json: ["kind": kind.rawValue, "name": name],
          text: (filter.kinds.count == 1 ? "" : kind.rawValue.padded(to: 14)) + name.onOneLine)
      }
    }
    if arguments.has("long") {
      var isPartial = false
      for names in KnownUnderName.parts(of: known) {
        if try environment.printLong(names, in: container, arguments, &faults) { isPartial = true }
      }
      if isPartial { environment.report("the container has more entries than ls reads") }
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
  /// Prints all that is known under some names, which are sorted.
  ///
  /// - Returns: Whether something was left out.
  fileprivate func printLong(
    _ names: ArraySlice<KnownUnderName.Listed>, in container: SharedContainer,
    _ arguments: ParsedArguments, _ faults: inout NameFaults
  ) throws -> Bool {
    let (first, last) = (names.first?.name ?? "", names.last?.name ?? "")
    let listed = Set(names.map { Array("\($0.kind)/\($0.name)".utf8) })
    let scope = ReportScope(
      .names,
      includes: { name, kind in
        !kind.isOwn && !name.utf8.lexicographicallyPrecedes(first.utf8)
          && !last.utf8.lexicographicallyPrecedes(name.utf8)
          && listed.contains(Array("\(kind.primitive)/\(name)".utf8))
      })
    let report = try container.report(scope)
    for shown in KnownUnderName.all(names, in: report.names) {
      if arguments.has("json") {
        try print(json: shown, .wholeSeconds)
      } else {
        try print(shown.text(columns: columns))
      }
    }
    // A name that was not looked at before.
    for failure in report.failures where failure.isOfOneName { faults.add(failure) }
    return report.isPartial
  }

  fileprivate func printGroups(_ arguments: ParsedArguments) throws {
    let groups = try ContainerLocation.groups()
    guard !groups.isEmpty else { throw ExitStatus.no }
    for (group, path) in groups {
      try print(
        arguments, json: ["container": path, "group": group], text: group.onOneLine)
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

/// Everything that a report knows under a name.
struct KnownUnderName: Encodable {
  typealias Listed = (kind: LiveNames, name: String)

  private let name: String
  private var value: ContainerReport.NamedContent?
  private var notification: ContainerReport.NamedContent?
  private var queue: ContainerReport.NamedQueue?
  private var log: ContainerReport.NamedLog?
  private var presence: [PresenceMember]?
  private var isPeer = false

  private enum CodingKeys: CodingKey { case name, value, notification, queue, log, presence }

  private init(_ name: String) { self.name = name }

  /// Returns the listed names, sorted, in parts of some thousand, so that no more are in memory; all
  /// kinds of a name are in one of them.
  static func parts(of listed: [Listed], size: Int = 10_000) -> [ArraySlice<Listed>] {
    var rest = listed.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }[...]
    var parts: [ArraySlice<Listed>] = []
    while let last = rest.prefix(size).last {
      let end = rest.dropFirst(size).firstIndex { !$0.name.utf8.elementsEqual(last.name.utf8) }
      parts.append(rest[..<(end ?? rest.endIndex)])
      rest = rest[(end ?? rest.endIndex)...]
    }
    return parts
  }

  /// Returns what a report says of the listed names, sorted. Names are compared byte by byte.
  static func all(
    _ listed: ArraySlice<Listed>, in names: ContainerReport.Names
  ) -> [KnownUnderName] {
    var all: [[UInt8]: KnownUnderName] = [:]
    func add(_ name: String, _ change: (inout KnownUnderName) -> Void) {
      change(&all[Array(name.utf8), default: KnownUnderName(name)])
    }
    for (kind, name) in listed { add(name) { if kind == .peer { $0.isPeer = true } } }
    for value in names.values where value.condition != .absent {
      add(value.identifier) { $0.value = value }
    }
    for state in names.notifications { add(state.identifier) { $0.notification = state } }
    for queue in names.queues { add(queue.name) { $0.queue = queue } }
    for log in names.logs { add(log.name) { $0.log = log } }
    for presence in names.presences where !presence.members.isEmpty {
      add(presence.name) { $0.presence = presence.members }
    }
    return all.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
  }

  private var lines: [(label: String, text: String?)] {
    let sent = value?.publisher.map { ", sent \($0.date.secondsText) by \($0)" } ?? ""
    let size = (value?.bytes?.sizeText ?? "of unknown size") + sent
    return [
      ("value", value.map { $0.problem.map { "cannot be read: \($0.briefReason)" } ?? size }),
      ("expires", value?.expires?.secondsText), ("version", value?.version?.text),
      ("place", value?.path), ("notification", notification.map { "state \($0.stateText)" }),
      ("queue", queue.map { "\($0.waitingText), taken by \($0.consumersText)" }),
      ("log", log.map { "\($0.messagesText), read by \($0.subscribersText)" }),
    ] + (presence ?? []).map { ("presence", $0.sinceText) }
      + [("peer", isPeer ? "see '\(ProgramName.called) peer list'" : nil)]
  }

  func text(columns: Int) -> String {
    var all = name.onOneLine + "\n"
    for case (let label, let text?) in lines {
      let lead = ("  " + label).padded(to: 16)
      // A path is copied, so it stays in one piece.
      let columns = label == "place" ? .max : columns
      all += TextWrapping.wrap(text.onOneLine, columns: columns, after: lead) + "\n"
    }
    return all
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
