import FoundationEssentials
import Wormhole
import WormholeInspection

/// The present and future problems of the etcd cluster of a container.
struct ClusterFindings {
  private let cluster: ClusterReport
  private let report: ContainerReport

  /// A database that is larger is near the quota that etcd has by default, 2 GB.
  private static let largeDatabase: Int64 = 1_600_000_000
  /// A longer history was not compacted as the documentation recommends.
  private static let longHistory: Int64 = 1_000_000
  /// How long a loss of history is worse than a note: a week.
  private static let recent: TimeInterval = 7 * 86_400
  /// A difference of clocks that people notice.
  private static let largeDifference: Duration = .seconds(1)
  /// A watch takes a tenth of a second for the history of a key.
  private static let slowWatch: Duration = .seconds(1)

  static func of(_ cluster: ClusterReport, of report: ContainerReport) -> [Finding] {
    ClusterFindings(cluster: cluster, report: report).all
  }

  private var all: [Finding] {
    let named = cluster.members.filter(\.isNamed)
    let silent = named.filter { $0.failure != nil }
    let left = cluster.members.count - silent.count
    let first = silent.map { unreachable($0, left: left) } + [noLeader] + cluster.alarms.map(alarm)
    let second = cluster.members.map(unnamed) + [size, history, replacement, encryption, slow]
    let third = Self.knownFaults.map { known($0, among: named.compactMap(\.version)) }
    let last = named.flatMap { [clock($0), watch($0)] } + [future]
    return [first, second, third, last].joined().compactMap(\.self)
  }

  /// - Parameter path: Nil for the container's.
  private func finding(
    _ level: Finding.Level, _ what: String, at path: String? = nil, advice: String,
    command: String? = nil
  ) -> Finding {
    Finding(
      kind: .cluster, ownLevel: level, what: what, path: path ?? report.path, advice: advice,
      command: command)
  }

  private func unreachable(_ member: ClusterReport.Member, left: Int) -> Finding? {
    let all = cluster.members.count
    let quorum = all / 2 + 1
    let rest = left >= quorum ? "." : ": nothing can be changed."
    return finding(
      left >= quorum ? .warning : .fault,
      "A member does not answer: \(member.failure ?? "for an unknown reason"). \(left) of \(all) are "
        + "left, and \(quorum) are needed" + rest,
      at: member.endpoint, advice: "Look at that machine, and at its etcd.")
  }

  private var noLeader: Finding? {
    guard !cluster.hasLeader, cluster.members.contains(where: { $0.failure == nil }) else {
      return nil
    }
    return finding(
      .fault, "The cluster has no leader, so nothing can be read or changed.",
      advice: "A majority of the members has to run and to reach each other.")
  }

  private func alarm(_ alarm: String) -> Finding? {
    let isFull = alarm == "NOSPACE"
    return finding(
      .fault,
      isFull
        ? "The database has reached its quota, so nothing can be written."
        : "The cluster reports the alarm \(alarm).",
      advice: isFull
        ? "Compact it (etcdctl compact REVISION), defragment each member, and then:"
        : "See the documentation of etcd for it. When it is mended:",
      command: "etcdctl alarm disarm")
  }

  private func unnamed(_ member: ClusterReport.Member) -> Finding? {
    guard !member.isNamed else { return nil }
    return finding(
      .note, "A member of the cluster is not among the hosts of the container's location.",
      at: member.endpoint,
      advice: "Name it, too, so that programs find it when the others are down.")
  }

  private var size: Finding? {
    guard let largest = cluster.members.compactMap(\.databaseBytes).max(),
      largest > Self.largeDatabase
    else { return nil }
    return finding(
      .warning,
      "The database has \(largest / 1_000_000) MB; etcd's quota is 2 GB unless it says otherwise.",
      advice: "Compact it, and defragment each member:", command: "etcdctl defrag --cluster")
  }

  private var history: Finding? {
    guard let oldest = cluster.oldestRevision, cluster.revision - oldest > Self.longHistory else {
      return nil
    }
    return finding(
      .warning,
      "The database keeps each of the last \(cluster.revision - oldest) changes, and grows with "
        + "every further one.",
      advice: "Start the members with:",
      command: "--auto-compaction-mode=revision --auto-compaction-retention=10000")
  }

  private var replacement: Finding? {
    guard let found = cluster.replacement else { return nil }
    return finding(
      found.date.timeIntervalSinceNow > -Self.recent ? .warning : .note,
      "The cluster came back with an older history, as from a snapshot: at "
        + "\(found.date.secondsText) it had come to revision \(found.found) only, and before to "
        + "\(found.known). What was changed after the snapshot is lost.",
      at: found.host,
      advice: "Restore a snapshot with etcdutl's --bump-revision and --mark-compacted, so that no "
        + "revision comes twice. This is said until the container's key \"history\" is deleted.")
  }

  private var encryption: Finding? {
    guard !cluster.isEncrypted, !cluster.isLoopback else { return nil }
    return finding(
      .warning,
      "Everything goes over the network unencrypted\(cluster.user == nil ? "" : ", the password, too"), "
        + "and everybody who reaches the members can read and change it.",
      advice: "Set TLS up, and write etcds:// with ca=, and a user or cert= and key=.")
  }

  private var slow: Finding? {
    guard let slowest = cluster.members.compactMap(\.roundTrip).max(),
      slowest * 10 > cluster.lifetime
    else { return nil }
    return finding(
      .warning,
      "A round trip takes \(slowest / .milliseconds(1)) ms, which is long for a lifetime of "
        + "\(cluster.lifetime.components.seconds) s: processes may be taken for dead.",
      advice: "Add ?ttl=\(min(60, max(10, slowest.components.seconds * 30))) to the location.")
  }

  /// Faults of etcd that the patch versions of a series before one have (its change log), and what follows
  /// the version in the sentence.
  private static let knownFaults:
    [(series: String, mended: Int, level: Finding.Level, what: String)] =
      [
        ("3.4.", 31, .note, forgetfulWatches), ("3.5.", 13, .note, forgetfulWatches),
        ("3.5.", 6, .warning, "may differ in its data from other members after it was killed"),
      ]
  private static let forgetfulWatches =
    "may report changes twice or lose them after a compaction; programs look again every "
    + "half minute"

  private func known(
    _ fault: (series: String, mended: Int, level: Finding.Level, what: String),
    among versions: [String]
  ) -> Finding? {
    let patches = versions.filter { $0.hasPrefix(fault.series) }
      .compactMap { Int($0.dropFirst(fault.series.count)) }
    guard let oldest = patches.min(), oldest < fault.mended else { return nil }
    return finding(
      fault.level,
      "etcd \(fault.series)\(oldest) \(fault.what) (mended in \(fault.series)\(fault.mended)).",
      advice: "Use a newer version where there is one.")
  }

  private func clock(_ member: ClusterReport.Member) -> Finding? {
    guard let difference = member.clockDifference else { return nil }
    let size = max(difference, .zero - difference)
    guard size > Self.largeDifference else { return nil }
    return finding(
      .warning,
      "This machine's clock is \(size.components.seconds) s or more "
        + "\(difference > .zero ? "ahead of" : "behind") that of the member: entries with a delay come "
        + "at another time than their sender meant, and the dates of publications mislead.",
      at: member.endpoint, advice: "Let both machines set their clocks by NTP.")
  }

  private func watch(_ member: ClusterReport.Member) -> Finding? {
    let what: String
    if let failure = member.watchFailure {
      what = "A watch of the member reported nothing, although the member answers: \(failure)."
    } else if let delay = member.watchDelay, delay > Self.slowWatch {
      what = "A watch of the member took \(delay / .milliseconds(1)) ms to report a change."
    } else {
      return nil
    }
    return finding(
      .warning, what + " Processes that it serves notice changes late, or not at all.",
      at: member.endpoint,
      advice:
        "Look at the load of that machine, and whether something between here and there holds "
        + "answers back that do not end, such as a proxy.")
  }

  /// If a publication is dated in the future, the publisher's clock, or ours, is wrong.
  private var future: Finding? {
    let values = report.names.values + report.own.values
    let dated = values.compactMap { value in value.publisher.map { (value, $0) } }
    guard let (value, publisher) = dated.max(by: { $0.1.date < $1.1.date }) else { return nil }
    let ahead = publisher.date.timeIntervalSinceNow
    guard ahead > Self.largeDifference.seconds else { return nil }
    return finding(
      .warning,
      "A publication by \(publisher) is dated \(Int(min(ahead, 3e9))) s in the future, so the "
        + "clock of its machine was ahead, or this machine's is behind.",
      at: value.path, advice: "Let both machines set their clocks by NTP.")
  }
}

extension ClusterReport {
  /// The lines of `status` about the cluster.
  var lines: [String] {
    let named = members.filter(\.isNamed)
    let answering = named.filter { $0.failure == nil }
    var facts: [String] = []
    facts.append(
      Set(answering.compactMap(\.version)).sorted().map { "etcd \($0)" }.joined(separator: ", "))
    facts.append(
      "\(members.count) \(members.count == 1 ? "member" : "members")"
        + (answering.count < named.count ? ", \(answering.count) of \(named.count) answer" : ""))
    if let leader = members.first(where: \.isLeader) {
      facts.append("leader \(leader.name.flatMap { $0.isEmpty ? nil : $0 } ?? leader.endpoint)")
    } else {
      facts.append("no leader")
    }
    facts.append("revision \(revision)")
    if let oldestRevision { facts.append("history from \(oldestRevision)") }
    if let bytes = answering.compactMap(\.databaseBytes).max() {
      facts.append("database \((bytes + 999_999) / 1_000_000) MB")
    }
    if let fastest = answering.compactMap(\.roundTrip).min() {
      let tenths = Int(fastest / .microseconds(100))
      facts.append("round trip \(tenths / 10).\(tenths % 10) ms")
    }
    if let slowest = answering.compactMap(\.watchDelay).max() {
      facts.append("a watch reports within \(Int((slowest / .milliseconds(1)).rounded(.up))) ms")
    }
    if let user { facts.append("as \(user)") }
    return facts.filter { !$0.isEmpty }
  }
}
