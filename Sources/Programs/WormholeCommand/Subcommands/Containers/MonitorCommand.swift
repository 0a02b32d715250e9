import FoundationEssentials
import GroupDefaults
import Wormhole
import WormholeInspection
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeTerminals
import WormholeToolkit

extension CommandDescription {
  static let monitor = CommandDescription(
    name: "monitor",
    abstract: "Print what happens in the container, one line each.",
    discussion: """
      A line has the local time, the kind, the name, what happened to it, and who did it, where a file \
      says so. A 'value', 'default' (those of a suite, or of the container) or 'own' value of the package \
      was changed or removed; a 'notification' was posted, or its state changed; entries of a 'queue' were \
      sent, taken or processed, so it was changed; a message was appended to a 'log'; a process entered or \
      left as a 'peer', 'presence' or 'consumer'. 'read', 'queue list' and 'status' show what there is now.

      A pattern is one of a shell: '*' stands for any text, '?' for one character, '[a-z]' for one of \
      some. The command prints 'listening' on standard error; from then on it shows every name, also \
      one that comes into being later. It only reads. If there is no container yet, it waits for its first \
      use. Of a burst of changes the last is always printed, the earlier ones perhaps; a process that comes \
      and goes between two looks is not. A value that expires is printed as removed when it is swept.

      \(eachCommand) Its environment has WORMHOLE_IDENTIFIER, the name.
      """,
    arguments: [
      .namePatterns,
      .value(
        "only", .choices(MonitorLine.Kind.allCases.map(\.rawValue)), named: "kind,...",
        help: "Print only these kinds."),
      .value(
        "except", .text, named: "pattern", help: "Leave out names that match; may be repeated.",
        isRepeating: true),
      .count, .timeout, .readyDescriptor,
      .flag("json", help: "Print a line of JSON for each event instead of text for people."),
      .command(forEach: "line"),
    ]
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let opened = try arguments.container.openToListen(
      until: deadline, environment, makesContainer: false)
    let filter = NameFilter(arguments)
    let backlog = Backlog<MonitorLine>.latest { [$0.kind.rawValue, $0.change, $0.name] }
    let monitor = try environment.looking {
      try opened.container.monitor(isNew: opened.isNew) { event in
        let line = MonitorLine(event)
        if filter.passes(kind: line.kind.rawValue), filter.passes(line.name) { backlog.add(line) }
      }
    }
    environment.reportIfPolling(monitor.detection, "the container")
    if !opened.isNew { environment.reportListening() }
    try withExtendedLifetime(monitor) {
      try arguments.handleEach(of: backlog.next, until: deadline) { line in
        try arguments.hand(
          line.object, text: line.text, titled: line.name.quoted, environment,
          variables: CommandVariable.common(identifier: line.name, time: nil, sender: nil))
      }
    }
  }
}

/// An event for people: defaults by their suites, peers by their names.
struct MonitorLine: Sendable {
  enum Kind: String, CaseIterable, Sendable {
    case value, `default`, notification, queue, log, peer, presence, consumer, own
  }

  let kind: Kind
  let name: String
  private let event: ContainerEvent

  init(_ event: ContainerEvent) {
    self.event = event
    let defaults = GroupDefaults.suite(ofOwnValue: event.name)
    let peer = PeerNames.peer(ofPresence: event.name)
    (kind, name) =
      switch (event.kind.primitive, event.kind.isOwn) {
      case (.value, true) where defaults.isDefaults: (.default, defaults.name ?? event.name)
      case (.presence, true) where peer != nil: (.peer, peer ?? event.name)
      case (.value, let isOwn): (isOwn ? .own : .value, event.name)
      case (.notification, _): (.notification, event.name)
      case (.presence, _): (.presence, event.name)
      case (.consumer, _): (.consumer, event.name)
      case (.queue, _): (.queue, event.name)
      case (.log, _): (.log, event.name)
      }
  }

  var change: String { event.change.rawValue }

  /// `10:15:03.123  value         tickets changed, process 11298 (wormhole)`.
  var text: String {
    let moment = event.time.timeIntervalSince1970
    let (hour, minute, second) = localTime(Int64(moment))
    let clock = [hour, minute, second].map { $0.padded(to: 2) }.joined(separator: ":")
    let milliseconds = Int((moment - moment.rounded(.down)) * 1_000).padded(to: 3)
    let author =
      switch event.author {
      case .publisher(let publisher): ", \(publisher)"
      case .process(let member): ", " + member.process
      case .sender(let sender): ", sender \(sender.quoted)"
      case nil: ""
      }
    return "\(clock).\(milliseconds)  " + kind.rawValue.padded(to: 14)
      + "\(name) \(change)\(author)".onOneLine
  }

  /// The line of `--json`. Keys are only ever added; unknown ones are left out.
  var object: JSONObject {
    var line: JSONObject = [
      "time": event.time, "kind": kind.rawValue, "name": name, "event": change,
    ]
    switch event.author {
    case .publisher(let publisher):
      line["process"] = publisher.processID
      (line["program"], line["peer"]) = (publisher.program, publisher.peer)
    case .process(let member):
      line["process"] = member.processID
      (line["program"], line["host"]) = (member.program, member.host)
    case .sender(let sender): line["sender"] = sender
    case nil: break
    }
    return line
  }
}
