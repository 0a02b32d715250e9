import FoundationEssentials
import GroupDefaults
import Wormhole
import WormholeInspection
import WormholePeers
import WormholePropertyLists
import WormholeToolkit
import WormholeWorkshop

struct MonitorLine: Sendable {
  enum Kind: String, CaseIterable, Sendable {
    case message, `default`, notification, queue, log, peer, presence, consumer, request, lease, own

    /// The word for an event, unless its name says more.
    init(of event: ContainerEvent) {
      self =
        switch event.kind {
        case .value: event.isOwn ? .own : .message
        case .call: .request
        case .notification: .notification
        case .presence: .presence
        case .consumer: .consumer
        case .queue: .queue
        case .log: .log
        case .lease: .lease
        }
    }
  }

  let kind: Kind
  var name: String
  var event: ContainerEvent
  /// The title for people of one of the package's own names.
  var title: String?
  var suite: String?
  /// Whether a default was removed.
  var isRemoval = false

  var change: String {
    if isRemoval { return "removed" }
    return event.kind == .call ? event.detail ?? "message" : event.change.rawValue
  }

  // MARK: Text

  /// `10:15:03.123  message       tickets changed {"film":"Metropolis"}, process 11298 (wormhole)`.
  var text: String {
    let words = [
      title.map { "\(name.onOneLine) (\($0.onOneLine))" } ?? name.onOneLine, change, what, content,
    ]
    let line = words.compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: " ")
    let kind = kind.rawValue.padded(to: 14)
    return time + "  " + kind + line + (process.map { ", " + $0 } ?? "")
  }

  private var time: String {
    let moment = event.time.timeIntervalSince1970
    let (hour, minute, second) = localTime(Int64(moment))
    let millisecond = Int((moment - moment.rounded(.down)) * 1_000)
    return [hour, minute, second].map { $0.padded(to: 2) }.joined(separator: ":") + "."
      + millisecond.padded(to: 3)
  }

  private var what: String? {
    switch event.kind {
    case .queue:
      let count = event.count ?? 1
      let size = event.bytes.map { " of \($0) B" } ?? ""
      let sender = event.sender.map { " from \($0.quoted.onOneLine)" } ?? ""
      let reason = event.detail.map { ": \($0.onOneLine)" } ?? ""
      return "\(count) \(count == 1 ? "entry" : "entries")\(size)\(sender)\(reason)"
    case .log: return event.number.map { "message \($0)" }
    case .call: return event.sender.map { "from \($0.onOneLine)" }
    case .lease: return event.detail
    case .value where suite != nil: return "in the suite \((suite ?? "").quoted.onOneLine)"
    default: return nil
    }
  }

  private var content: String? {
    if let problem = event.problem { return "cannot be read: \(problem.onOneLine)" }
    guard let value = event.value else { return event.kind == .call ? size : nil }
    return value.shortText(bytes: event.bytes) ?? size
  }

  private var size: String? { event.bytes.map { "(\($0) B)" } }

  private var process: String? {
    guard let number = event.processID else { return nil }
    let program = event.program.map { " (\($0.onOneLine))" } ?? ""
    let host = event.host.map { " on \($0.onOneLine)" } ?? ""
    let peer = event.peer.map { " as \($0.quoted.onOneLine)" } ?? ""
    return "process \(number)\(program)\(host)\(peer)"
  }

  // MARK: JSON

  /// The line of `--json`. Keys are only ever added; unknown ones are left out.
  var propertyList: PropertyListValue {
    .object([
      "time": event.time, "kind": kind.rawValue, "name": name, "event": change, "title": title,
      "suite": suite, "value": event.value, "bytes": event.bytes, "count": event.count,
      "sender": event.sender, "number": event.number, "process": event.processID,
      "program": event.program, "peer": event.peer, "host": event.host,
      "reason": event.kind == .call ? nil : event.detail, "problem": event.problem,
    ])
  }

  var json: String {
    get throws {
      do {
        return try JSONWriter.string(propertyList)
      } catch {
        var line = self
        line.event.value = nil
        line.event.problem = error.reason
        return try JSONWriter.string(line.propertyList)
      }
    }
  }
}

/// Turns the events of a container into events for people: defaults by their keys, peers by their
/// names.
struct MonitorView {
  private var defaults: [String: [String: PropertyListValue]] = [:]
  /// The peers, by the addresses of their mailboxes.
  private(set) var peers: [String: String] = [:]
  /// The addresses of former mailboxes, the last at the end. A post from before may still name a
  /// mailbox that is gone.
  private var former: [String] = []
  static let maximumFormer = 100

  /// Returns the lines of an event; several if a value has several defaults.
  mutating func lines(of event: ContainerEvent) -> [MonitorLine] {
    let lines = allLines(of: event)
    return event.change == .known ? [] : lines
  }

  private mutating func allLines(of event: ContainerEvent) -> [MonitorLine] {
    var line = MonitorLine(kind: .init(of: event), name: event.name, event: event)
    switch event.kind {
    case .value where event.isOwn:
      let (isDefaults, suite) = GroupDefaults.suite(ofOwnValue: event.name)
      if isDefaults { return changedDefaults(event, suite) }
      line.title = OwnTitles.use(ofValue: event.name).title
    case .presence where event.isOwn: line = presence(event)
    case .lease where event.isOwn: line.title = OwnTitles.use(ofValue: event.name).title
    case .consumer where event.isOwn, .queue where event.isOwn:
      line.title = OwnTitles.queue(event.name)
    case .call:
      line.name = peers[event.name] ?? event.name
      line.event.sender = event.sender.map { peers[$0] ?? $0 }
      // The dictionary that a session puts around a request.
      if let from = event.value?["from"]?.stringValue, let value = event.value?["value"] {
        line.event.sender = from
        line.event.value = value
      }
    default: break
    }
    return [line]
  }

  /// One of the package's own presences.
  private mutating func presence(_ event: ContainerEvent) -> MonitorLine {
    guard let peer = PeerNames.peer(ofPresence: event.name) else {
      return MonitorLine(
        kind: .presence, name: event.name, event: event,
        title: OwnTitles.title(event.name, .ownPresence))
    }
    if let address = event.value?["mailbox"]?.stringValue {
      peers[address] = peer
      if [.left, .died].contains(event.change) { former.append(address) }
      if former.count > Self.maximumFormer { peers[former.removeFirst()] = nil }
    }
    var line = MonitorLine(kind: .peer, name: peer, event: event)
    line.event.value = nil
    return line
  }

  private mutating func changedDefaults(
    _ event: ContainerEvent, _ suite: String?
  ) -> [MonitorLine] {
    guard event.problem == nil else {
      return [MonitorLine(kind: .default, name: suite ?? "defaults", event: event, suite: suite)]
    }
    let old = defaults[event.name] ?? [:]
    let new = event.value?.dictionaryValue ?? [:]
    defaults[event.name] = new
    return Set(old.keys).union(new.keys).sorted().compactMap { key in
      guard old[key] != new[key] else { return nil }
      var line = MonitorLine(kind: .default, name: key, event: event, suite: suite)
      line.event.value = new[key]
      line.event.bytes = nil
      line.isRemoval = new[key] == nil
      return line
    }
  }
}
