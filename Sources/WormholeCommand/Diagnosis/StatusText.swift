import AppGroup
import FoundationEssentials
import PeerConnectivity

/// What `status` prints for people.
struct StatusText {
  let report: ContainerReport
  let peers: [PeerWork]
  let now: Date
  let columns: Int

  var rendered: String {
    var text = head
    var messages: [[String]] = []
    var defaults: [[String]] = []
    for value in report.values where !isAbsent(value) {
      switch ValueUse(value.identifier) {
      case .message: messages.append([value.identifier, size(value), condition(value)])
      case .defaults(let suite):
        defaults.append([suite ?? "(the container's)", size(value), condition(value)])
      case .presenters, .peers: continue
      }
    }
    text += table(["MESSAGE", "SIZE", "CHANGED"], messages)
    text += table(["DEFAULTS", "SIZE", "CHANGED"], defaults)
    text += table(
      ["NOTIFICATION", "STATE"], report.notifications.map { [$0.identifier, state($0)] })
    text += table(
      ["PEER", "WAITING", "STATE"],
      peers.map { [$0.peer.name, $0.text, $0.peer.reachability.reason] })
    text += table(
      ["PRESENT AS", "PROCESS"],
      presences.flatMap { name in name.members.map { [name.name, member($0)] } })
    text += table(["QUEUE", "WAITING", "CONSUMED BY"], queues.map(row))
    text += table(
      ["LEASE OF", "HELD BY"], report.leases.map { [$0.identifier, holder($0)] })
    text += notes.map { "\n" + $0 + "\n" }.joined()
    return text
  }

  private var head: String {
    var facts: [String] = []
    if let version = report.formatVersion { facts.append("format \(version)") }
    if let group = report.groupIdentifier { facts.append("group \(group)") }
    if let created = report.created.flatMap({ ISO8601.text($0.wholeSeconds) }) {
      facts.append("made \(created)")
    }
    var text = "\(report.path)\n  \(facts.joined(separator: ", "))\n"
    if let network = report.networkFileSystem {
      text += "  on \(network), a network file system: changes are noticed by polling\n"
    }
    let isEmpty =
      report.values.isEmpty && report.notifications.isEmpty
      && report.presences.allSatisfy(\.members.isEmpty) && queues.isEmpty
    if isEmpty { text += "  nothing in it yet\n" }
    return text
  }

  /// Those of a consumer are told with its queue, those of a peer with its name.
  private var presences: [ContainerReport.NamedPresence] {
    let roles = Set(report.queues.map { "queue/" + $0.name })
    return report.presences.filter {
      !roles.contains($0.name) && PeerNames.peer(ofPresence: $0.name) == nil
    }
  }

  /// Those in which there is anything, or about to be; those of a peer are told with its name.
  private var queues: [ContainerReport.NamedQueue] {
    report.queues.filter { queue in
      let isInUse =
        queue.waiting + queue.taken + queue.outcomes + queue.receipts > 0 || queue.consumer != nil
      return isInUse && !peers.contains { $0.has(queue) }
    }
  }

  private func row(_ queue: ContainerReport.NamedQueue) -> [String] {
    var waiting = "\(queue.waiting)"
    if let oldest = queue.oldest {
      waiting += " (\(size(queue.waitingBytes)), oldest \(age(oldest)))"
    }
    if queue.taken > 0 { waiting += ", \(queue.taken) taken" }
    return [queue.name, waiting, queue.consumer.map(member) ?? "nobody"]
  }

  private var notes: [String] {
    var notes: [String] = []
    if !report.quarantine.isEmpty {
      notes.append("In quarantine: \(report.quarantine.count) (\(report.path)/quarantine)")
    }
    let absent = report.values.count {
      isAbsent($0) && ValueUse($0.identifier) == .message
    }
    if absent > 0 {
      notes.append("Names without a message, cleared or only listened to: \(absent)")
    }
    let outcomes = report.queues.reduce(0) { $0 + $1.outcomes }
    let receipts = report.queues.reduce(0) { $0 + $1.receipts }
    if outcomes + receipts > 0 {
      notes.append(
        "Kept for senders of queues until they forget them: ends \(outcomes), receipts \(receipts)")
    }
    if report.isPartial { notes.append("There is more than a status looks at.") }
    let faults = Findings.of(report, options: "").count
    if faults > 0 {
      notes.append("\(faults == 1 ? "One thing is" : "\(faults) things are") wrong: see doctor.")
    }
    return notes
  }

  private func isAbsent(_ content: ContainerReport.NamedContent) -> Bool {
    if case .absent = content.condition { true } else { false }
  }

  private func size(_ content: ContainerReport.NamedContent) -> String {
    content.bytes.map(size) ?? "-"
  }

  private func size(_ bytes: Int64) -> String {
    bytes < 10_000
      ? "\(bytes) B" : bytes < 10_000_000 ? "\(bytes / 1_000) kB" : "\(bytes / 1_000_000) MB"
  }

  private func condition(_ content: ContainerReport.NamedContent) -> String {
    switch content.condition {
    case .absent: "-"
    case .unreadable(let error): "cannot be read: \(error.briefReason)"
    case .readable, .notRead: content.modified.map(age) ?? "-"
    }
  }

  private func state(_ content: ContainerReport.NamedContent) -> String {
    if case .unreadable(let error) = content.condition { return "unreadable: \(error.briefReason)" }
    return content.state.map { "\($0)" } ?? "-"
  }

  private func holder(_ lease: ContainerReport.HeldLease) -> String {
    let overdue =
      switch lease.overdue {
      case .stopped: "; may be taken away, for it is stopped"
      case .termPassed: "; may be taken away, for its term has passed"
      case nil: ""
      }
    return lease.holder.description + overdue
  }

  private func member(_ member: PresenceMember) -> String {
    "\(member.description), entered \(age(member.since))"
  }

  private func age(_ date: Date) -> String {
    let seconds = Int(min(max(now.timeIntervalSince(date), 0), 1e12))
    return switch seconds {
    case ..<1: "just now"
    case ..<120: "\(seconds) s ago"
    case ..<7_200: "\(seconds / 60) min ago"
    case ..<172_800: "\(seconds / 3_600) h ago"
    default: ISO8601.text(date.wholeSeconds) ?? "long ago"
    }
  }

  private func table(_ head: [String], _ rows: [[String]]) -> String {
    rows.isEmpty ? "" : "\n" + TextTable(head, rows, columns: columns).rendered
  }
}
