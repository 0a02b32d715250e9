import Synchronization
import Wormhole
import WormholeInspection

extension CommandDescription {
  static let monitor = CommandDescription(
    name: "monitor",
    abstract: "Print everything that happens in the container, one line each.",
    discussion: """
      A line has the local time, the kind, the name, what happened, and which process did it, where that \
      is recorded. Kinds:
      'message': a message or value was changed or removed
      'default': a default was changed or removed; the name is its key
      'notification': it was posted, or its state was changed
      'queue': entries were sent, taken, released, acknowledged, or ended otherwise
      'log': a message was appended
      'peer', 'presence', 'consumer': a process entered, left or died
      'request': a request, a reply or a notice was posted to a peer
      'lease': a process took the lease of another over
      'own': something else that the package keeps for itself

      A pattern is one of a shell: '*' stands for any text, '?' for one character, '[a-z]' for one of \
      some. The command prints 'listening' on standard error; from then on it shows every name, also \
      one that comes into being later. It only reads: it makes nothing, takes no lease, and consumes \
      nothing. If there is no container yet, it waits for its first use.

      Of a burst of changes the last state is always printed, the earlier ones perhaps. In a directory \
      the lines of different names come in the order in which they were seen, \
      an entry of a queue that is taken and settled between two looks is printed without 'taken', \
      a process that comes and goes not at all, and a request that is delivered at once without its content. Entries that were sent \
      together count as one until the last has ended. A value that expires is printed as removed \
      when it is swept. On etcd there are no leases; all other changes are printed, \
      in their order.

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
    let backlog = MonitorItem.backlog()
    let view = Mutex(MonitorView())
    let monitor = try environment.looking {
      try ContainerMonitor(opened.container, isNew: opened.isNew) { event in
        for line in view.withLock({ $0.lines(of: event) })
        where filter.passes(kind: line.kind.rawValue) && filter.passes(line.name) {
          backlog.add(.line(line))
        }
      }
    }
    environment.reportIfPolling(monitor.detection, "the container")
    if !opened.isNew { environment.reportListening() }
    try withExtendedLifetime(monitor) {
      try arguments.handleEach(of: backlog.next, until: deadline) { item in
        switch item {
        case .line(let line):
          return try arguments.hand(
            Array("\(arguments.has("json") ? line.json : line.text)\n".utf8),
            titled: line.name.quoted, environment,
            variables: CommandVariable.common(identifier: line.name, time: nil, sender: nil))
        case .leftOut(let count):
          environment.report("\(count) events were left out, because nobody read the lines in time")
          return nil
        }
      }
    }
  }
}

enum MonitorItem: Sendable {
  case line(MonitorLine)
  /// This number of lines was dropped.
  case leftOut(Int)

  /// Lines that have not been printed yet. Beyond `capacity` the older half of them is dropped, so a slow
  /// reader of our output costs no more memory than this, and gets the last state.
  static func backlog(capacity: Int = 10_000) -> Backlog<MonitorItem> {
    Backlog { items, item in
      if items.count >= capacity {
        var dropped = 0
        for item in items.prefix(capacity / 2) {
          if case .leftOut(let count) = item { dropped += count } else { dropped += 1 }
        }
        items.replaceSubrange(..<(capacity / 2), with: [.leftOut(dropped)])
      }
      items.append(item)
    }
  }
}
