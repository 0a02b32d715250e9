import GroupDefaults
import Wormhole
import WormholeInspection
import WormholePeers
import WormholePropertyLists

/// Turns the events of a container into those that people know: defaults by their keys, peers by their
/// names.
struct MonitorView {
  /// The defaults as they were seen last, by the name of their value.
  private var defaults: [String: [String: PropertyListValue]] = [:]
  /// The peers, by the addresses of their mailboxes.
  private(set) var peers: [String: String] = [:]
  /// The addresses of those that are gone, the last at the end. A mailbox that is gone may still be told
  /// of by what was posted before.
  private var former: [String] = []
  /// So many of them are known.
  static let maximumFormer = 100

  /// Returns the lines of an event; several if a value has several defaults.
  mutating func lines(of event: ContainerEvent) -> [MonitorLine] {
    var lines = allLines(of: event)
    if event.change == .known { lines = [] }
    return lines
  }

  private mutating func allLines(of event: ContainerEvent) -> [MonitorLine] {
    switch event.kind {
    case .value where event.isOwn:
      let (isDefaults, suite) = GroupDefaults.suite(ofOwnValue: event.name)
      return isDefaults
        ? changedDefaults(event, suite)
        : [MonitorLine(.own, event.name, event, title: OwnTitles.use(ofValue: event.name).title)]
    case .value: return [MonitorLine(.message, event.name, event)]
    case .notification: return [MonitorLine(.notification, event.name, event)]
    case .presence: return [presence(event)]
    case .consumer:
      return [MonitorLine(.consumer, event.name, event, title: title(ofQueue: event))]
    case .queue: return [MonitorLine(.queue, event.name, event, title: title(ofQueue: event))]
    case .log: return [MonitorLine(.log, event.name, event)]
    case .call:
      var line = MonitorLine(.request, peers[event.name] ?? event.name, event)
      line.event.sender = event.sender.map { peers[$0] ?? $0 }
      // What a session puts around a request.
      if let from = event.value?["from"]?.stringValue, let value = event.value?["value"] {
        line.event.sender = from
        line.event.value = value
      }
      return [line]
    case .lease:
      let title = event.isOwn ? OwnTitles.use(ofValue: event.name).title : nil
      return [MonitorLine(.lease, event.name, event, title: title)]
    }
  }

  private func title(ofQueue event: ContainerEvent) -> String? {
    event.isOwn ? OwnTitles.queue(event.name) : nil
  }

  private mutating func presence(_ event: ContainerEvent) -> MonitorLine {
    guard event.isOwn else { return MonitorLine(.presence, event.name, event) }
    guard let peer = PeerNames.peer(ofPresence: event.name) else {
      return MonitorLine(
        .presence, event.name, event, title: OwnTitles.title(event.name, .ownPresence))
    }
    if let address = event.value?["mailbox"]?.stringValue {
      peers[address] = peer
      if [.left, .died].contains(event.change) { former.append(address) }
      if former.count > Self.maximumFormer { peers[former.removeFirst()] = nil }
    }
    var line = MonitorLine(.peer, peer, event)
    line.event.value = nil
    return line
  }

  private mutating func changedDefaults(
    _ event: ContainerEvent, _ suite: String?
  ) -> [MonitorLine] {
    guard event.problem == nil else {
      return [MonitorLine(.default, suite ?? "defaults", event, suite: suite)]
    }
    let old = defaults[event.name] ?? [:]
    let new = event.value?.dictionaryValue ?? [:]
    defaults[event.name] = new
    return Set(old.keys).union(new.keys).sorted().compactMap { key in
      guard old[key] != new[key] else { return nil }
      var line = MonitorLine(.default, key, event, suite: suite)
      line.event.value = new[key]
      line.event.bytes = nil
      line.isRemoval = new[key] == nil
      return line
    }
  }
}

/// Which lines are printed.
struct MonitorFilter {
  private let patterns: [ShellPattern]
  private let exceptions: [ShellPattern]
  private let kinds: Set<String>

  init(_ arguments: ParsedArguments) {
    patterns = arguments.texts("pattern").map { ShellPattern($0) }
    exceptions = arguments.texts("except").map { ShellPattern($0) }
    kinds = Set(arguments.text("only").map(ValueKind.list) ?? [])
  }

  func passes(_ line: MonitorLine) -> Bool {
    (kinds.isEmpty || kinds.contains(line.kind.rawValue))
      && (patterns.isEmpty || patterns.contains { $0.matches(line.name) })
      && !exceptions.contains { $0.matches(line.name) }
  }
}
