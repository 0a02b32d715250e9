import FoundationEssentials
import GroupDefaults
import Wormhole
import WormholeInspection
import WormholePeers
import WormholeTerminals

struct StatusText {
  let report: ContainerReport
  /// The tables of values.
  let values: String
  let peers: [PeerWork]
  let claims: [NamedClaim]
  /// The width of sentences.
  let columns: Int
  /// The width of tables; nil for one line each.
  var tableColumns: Int?

  var rendered: String {
    let failures = report.own.queues.flatMap(\.peerFailures)
    let tables: [(head: [String], rows: [[String]])] = [
      (["DEFAULTS", "SIZE", "CHANGED", "BY"], defaults),
      (
        ["NOTIFICATION", "STATE"], report.names.notifications.map { [$0.identifier, $0.stateText] }
      ),
      (
        ["PEER", "WAITING", "STATE"],
        peers.map { [$0.peer.name, $0.text, $0.peer.reachability.reason] }
      ),
      (
        ["PRESENT AS", "PROCESS"],
        presences.flatMap { title, name in name.members.map { [title, $0.sinceText] } }
      ),
      (NamedClaim.head, claims.map(\.cells)),
      (ContainerReport.NamedQueue.head, queues.map(\.cells)),
      (
        ["LOG", "MESSAGES", "READ BY"],
        report.names.logs.map { [$0.name, $0.messagesText, $0.subscribersText] }
      ),
      (
        ["FAILED", "GIVEN UP", "WHY"],
        failures.map { [$0.id, $0.date.secondsText, $0.reason] }
      ), (["LEASE OF", "HOLDER"], report.leases.map { [$0.title ?? $0.identifier, holder($0)] }),
    ]
    return heading + (values.isEmpty ? "" : "\n" + values)
      + tables.filter { !$0.rows.isEmpty }.map { table in
        "\n" + TextTable(table.head, table.rows, columns: tableColumns).rendered
      }.joined()
      + notes.map { "\n" + TextWrapping.wrap($0, columns: columns, indent: 2) + "\n" }.joined()
  }

  private var heading: String {
    var facts: [String] = []
    if let version = report.formatVersion { facts.append("format \(version)") }
    if let group = report.groupIdentifier { facts.append("group \(group.onOneLine)") }
    if let cluster = report.cluster { facts += cluster.lines }
    if let created = report.created { facts.append("created \(created.secondsText)") }
    if let network = report.networkFileSystem {
      facts.append("on \(network), a network file system: listeners poll")
    }
    let line = facts.joined(separator: ", ")
    var text =
      report.path.onOneLine + "\n" + TextWrapping.wrap(line, columns: columns, after: "  ") + "\n"
    let isEmpty =
      values.isEmpty && report.names.values.isEmpty && report.names.notifications.isEmpty
      && report.own.values.isEmpty && presences.allSatisfy(\.1.members.isEmpty) && queues.isEmpty
      && report.names.logs.isEmpty
    if isEmpty { text += "  empty\n" }
    return text
  }

  private var defaults: [[String]] {
    report.own.values.filter { $0.condition != .absent }.compactMap { value in
      let (isDefaults, suite) = GroupDefaults.suite(ofOwnValue: value.identifier)
      return isDefaults ? [suite ?? "(the container's)"] + value.cells : nil
    }
  }

  /// Presences of a peer are in the peer's row.
  private var presences: [(title: String, ContainerReport.NamedPresence)] {
    let own = report.own.presences.filter {
      PeerNames.peer(ofPresence: $0.name) == nil && PlainLog.use(ofOwnValue: $0.name) == nil
    }
    return (report.names.presences + own).map { ($0.title ?? $0.name, $0) }
  }

  /// Queues with content or a consumer; a peer's queues are in the peer's row.
  private var queues: [ContainerReport.NamedQueue] {
    let own = report.own.queues.filter { queue in !peers.contains { $0.has(queue) } }
    return (report.names.queues + own).filter { queue in
      queue.waiting + queue.taken + queue.outcomes + queue.receipts + queue.failed > 0
        || queue.consumer != nil || !queue.workers.isEmpty
    }
  }

  private var notes: [String] {
    var notes: [String] = []
    if !report.quarantine.isEmpty {
      notes.append("In quarantine: \(report.quarantine.count) (\(report.path)/quarantine)")
    }
    let absent = report.names.values.count { $0.condition == .absent }
    if absent > 0 {
      notes.append("Names without a value, because it was removed or never sent: \(absent)")
    }
    let queues = report.names.queues + report.own.queues
    let outcomes = queues.reduce(0) { $0 + $1.outcomes }
    let receipts = queues.reduce(0) { $0 + $1.receipts }
    if outcomes + receipts > 0 {
      notes.append(
        "Records kept for senders: outcomes \(outcomes), receipts \(receipts)")
    }
    if report.isPartial { notes.append("The container has more entries than a status reads.") }
    let findings = Findings.of(report, options: "")
    if let summary = findings.summary(of: [.fault, .warning]) {
      notes.append("Problems: \(summary); see '\(ProgramName.called) doctor'.")
    }
    return notes
  }

  private func holder(_ lease: ContainerReport.HeldLease) -> String {
    let overdue =
      switch lease.overdue {
      case .stopped: "; can be taken over"
      case .termPassed: "; can be taken over: its term has passed"
      case nil: ""
      }
    return lease.holder.holding + overdue
  }
}

struct ListedPeer: Listed {
  let peer: Peer

  static let head = ["PEER", "STATE", "WHY"]

  var cells: [String] { [peer.name, peer.reachability.word, peer.reachability.reason] }

  func encode(to encoder: any Encoder) throws {
    let (member, end): (PresenceMember?, Date?) =
      switch peer.reachability {
      case .reachable(let present), .suspended(let present): (present, nil)
      case .gone(let last, let ended): (last, ended)
      case .launchable, .neverSeen: (nil, nil)
      }
    let members: JSONObject = [
      "name": peer.name, "state": peer.reachability.word, "reason": peer.reachability.reason,
      "process": member?.processID, "program": member?.program,
      "since": member?.since.wholeSeconds, "ended": end?.wholeSeconds,
    ]
    try members.encode(to: encoder)
  }
}

/// A peer, with the messages and files that wait for it.
struct PeerWork: Encodable {
  let peer: Peer
  let messages: ContainerReport.NamedQueue?
  let files: ContainerReport.NamedQueue?

  init(_ peer: Peer, in report: ContainerReport) {
    self.peer = peer
    let queue = { (name: String) in
      report.own.queues.first { $0.name.utf8.elementsEqual(name.utf8) }
    }
    messages = queue(PeerNames.messages(peer.name))
    files = queue(PeerNames.files(peer.name))
  }

  func has(_ queue: ContainerReport.NamedQueue) -> Bool {
    [messages?.path, files?.path].contains(queue.path)
  }

  /// `3 messages (received by process 4711), 1 file`; taken, unacknowledged entries count.
  var text: String {
    let parts = [("message", messages), ("file", files)].compactMap { noun, queue -> String? in
      guard let queue, queue.outstanding + queue.failed > 0 || queue.consumer != nil else {
        return nil
      }
      let receiver = queue.consumer.map { " (received by process \($0.processID))" } ?? ""
      let failed = queue.failed > 0 ? ", \(queue.failed) failed" : ""
      return "\(queue.outstanding) \(noun)\(queue.outstanding == 1 ? "" : "s")\(receiver)\(failed)"
    }
    return parts.isEmpty ? "-" : parts.joined(separator: ", ")
  }

  func encode(to encoder: any Encoder) throws {
    try ListedPeer(peer: peer).encode(to: encoder)
    let counts: JSONObject = [
      "messages": messages?.outstanding ?? 0, "files": files?.outstanding ?? 0,
      "failed": (messages?.failed ?? 0) + (files?.failed ?? 0),
    ]
    try counts.encode(to: encoder)
  }
}

extension ContainerReport.NamedQueue {
  fileprivate var outstanding: Int { waiting + taken }
}
