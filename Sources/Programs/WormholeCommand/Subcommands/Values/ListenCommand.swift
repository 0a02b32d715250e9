import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTerminals

extension CommandDescription {
  static let listen = CommandDescription(
    name: "listen",
    abstract: "Print values as they arrive, one line each.",
    discussion: """
      A name with '*', '?' or '[' is a pattern of a shell, and stands for every value whose name \
      matches it or is exactly this text, also one that is sent for the first time later. With a \
      pattern or several names a line is {"identifier": ..., "message": ...}; with --details it is \
      that of 'read --details'.

      The command prints 'listening' on standard error; from then on it misses nothing. After a burst of \
      values the last one is always printed, the earlier ones perhaps. The removal of a value prints \
      nothing. If the group has no container yet, the command waits for its first use and makes nothing. If the \
      container is removed and made again, or a link above it is pointed elsewhere, listening goes on there.

      \(eachCommand) Its environment has WORMHOLE_IDENTIFIER, the name of the value, WORMHOLE_TIME, when it was sent, and \
      WORMHOLE_SENDER, the peer that sent it or else the program; the last two are empty for a file that \
      another kind of program wrote. Without a COMMAND, listening ends when nobody reads the lines any \
      more.
      """,
    arguments: [
      .valueNames(), .count, .timeout, .readyDescriptor,
      .details,
      .flag("current", help: "Begin with the current value, if there is one."), .jsonAlways,
      .format, .command(forEach: "value"),
    ]
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let opened = try arguments.container.openToListen(until: deadline, environment)
    let names = arguments.texts("name")
    try arguments.reportForgottenCommand(among: names, in: opened.container, environment)
    let listener = try MessageListener(
      in: opened.container, names, startsWithCurrent: arguments.has("current") || opened.isNew)
    for (detection, name) in listener.detections { environment.reportIfPolling(detection, name) }
    if !opened.isNew { environment.reportListening() }
    let namesEach = names.count > 1 || listener.hasPatterns
    // The closure keeps the listener.
    try arguments.handleEach(of: listener.arrivals.next, until: deadline) { arrival in
      do {
        guard let snapshot = try listener.snapshot(of: arrival) else { return nil }
        // The removal of a value is not a value.
        guard let message = try snapshot.propertyList() else { return nil }
        let identifier = arrival.identifier
        let publisher = snapshot.publisher
        return try arguments.hand(
          arguments.line(of: message, snapshot, identifier, isOneOfSeveral: namesEach),
          titled: identifier.quoted, environment,
          variables: CommandVariable.common(
            identifier: identifier, time: publisher?.date,
            sender: publisher.map { $0.peer ?? $0.program }))
      } catch let error as WormholeError {
        // A value that cannot be read is reported, and does not count.
        environment.report(error)
        return nil
      }
    }
  }
}

extension ParsedArguments {
  /// Reports the name of a program that is taken for the name of a value.
  fileprivate func reportForgottenCommand(
    among names: [String], in container: SharedContainer, _ environment: CommandEnvironment
  ) throws {
    guard tail == nil,
      let place = try names.indices.dropFirst().first(where: {
        try environment.hasProgram(names[$0]) && container.value(names[$0]).version() == nil
      })
    else { return }
    let words = (names[..<place] + ["--"] + names[place...]).map(\.quotedForShell)
    environment.report(
      "\(names[place].quoted) is taken as the name of a value; a command goes after '--': "
        + "'\(ProgramName.called) listen \(words.joined(separator: " "))'")
  }
}

/// Receives values, by their names or by patterns.
private final class MessageListener {
  struct Arrival: Sendable {
    let identifier: String
    /// Nil for a value that is read when its turn comes.
    let snapshot: PlainSnapshot?
  }

  let arrivals = Backlog<Arrival>.latest(of: \.identifier)
  let hasPatterns: Bool
  /// How changes are noticed, with what is observed.
  private(set) var detections: [(ChangeDetection, of: String)] = []
  private let container: SharedContainer
  private var observations: [ObservationToken] = []
  private var monitor: (any Watching)?
  /// The last handled values, because two events may report the same one.
  private var handled: [String: Version] = [:]

  init(in container: SharedContainer, _ names: [String], startsWithCurrent: Bool) throws {
    self.container = container
    hasPatterns = names.contains(where: ShellPattern.isMeant)
    guard hasPatterns else {
      let queue = Blocking.queue()
      for name in names {
        let observation = try container.value(name).offer(
          startsWithCurrent: startsWithCurrent, on: queue
        ) { [arrivals] in
          if !$0.isKnown { arrivals.add(Arrival(identifier: name, snapshot: $0)) }
          return true
        }
        detections.append((observation.detection, name))
        observations.append(observation)
      }
      return
    }
    let patterns = names.map { ShellPattern($0) }
    let matches: @Sendable (String) -> Bool = { name in
      names.contains { $0.utf8.elementsEqual(name.utf8) } || patterns.contains { $0.matches(name) }
    }
    let monitor = try container.monitor { [arrivals] event in
      guard event.kind == .value, matches(event.name) else { return }
      arrivals.add(Arrival(identifier: event.name, snapshot: nil))
    }
    detections = [(monitor.detection, "the container")]
    self.monitor = monitor
    guard startsWithCurrent else { return }
    for name in try container.valueIdentifiers().filter(matches).sorted() {
      arrivals.add(Arrival(identifier: name, snapshot: nil))
    }
  }

  /// - Returns: nil for a value that was already handled.
  func snapshot(of arrival: Arrival) throws -> PlainSnapshot? {
    if let snapshot = arrival.snapshot { return snapshot }
    let snapshot = try container.value(arrival.identifier).snapshot()
    guard let version = snapshot.version else { return nil }
    guard handled.updateValue(version, forKey: arrival.identifier) != version else { return nil }
    return snapshot
  }
}
