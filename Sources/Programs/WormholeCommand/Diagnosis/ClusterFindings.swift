import FoundationEssentials
import Wormhole
import WormholeInspection

/// What is wrong, or will be, with the etcd cluster of a container.
enum ClusterFindings {
  /// A database that is larger is near the quota that etcd has by default, 2 GB.
  private static let largeDatabase: Int64 = 1_600_000_000
  /// A history that is longer was not compacted as the documentation asks for.
  private static let longHistory: Int64 = 1_000_000
  /// How long a loss of history is more than a note: a week.
  private static let recent: TimeInterval = 7 * 86_400

  static func of(_ cluster: ClusterReport, of report: ContainerReport) -> [Finding] {
    let members = cluster.members.filter(\.isNamed)
    let silent = members.filter { $0.failure != nil }
    return silent.map { member(unreachable: $0, among: cluster.members.count, silent.count) }
      + noLeader(cluster, report) + alarms(cluster, report) + unnamed(cluster)
      + size(cluster, report) + history(cluster, report) + replacement(cluster)
      + encryption(cluster, report)
      + slow(cluster, report) + versions(members, report)
      + members.flatMap { clock($0) + watch($0) } + future(report)
  }

  fileprivate static func finding(
    _ level: Finding.Level, _ what: String, _ path: String, _ advice: String,
    _ command: String? = nil
  ) -> Finding {
    Finding(
      kind: .cluster, ownLevel: level, what: what, path: path, advice: advice, command: command)
  }

  private static func member(
    unreachable member: ClusterReport.Member, among all: Int, _ silent: Int
  ) -> Finding {
    let left = all - silent
    let quorum = all / 2 + 1
    let rest =
      left >= quorum
      ? "\(left) of \(all) are left, and \(quorum) are needed."
      : "\(left) of \(all) are left, and \(quorum) are needed: nothing can be changed."
    return finding(
      left >= quorum ? .warning : .fault,
      "A member does not answer: \(member.failure ?? "for an unknown reason"). \(rest)",
      member.endpoint, "Look at that machine, and at its etcd.")
  }

  private static func noLeader(_ cluster: ClusterReport, _ report: ContainerReport) -> [Finding] {
    guard !cluster.hasLeader, cluster.members.contains(where: { $0.failure == nil }) else {
      return []
    }
    return [
      finding(
        .fault, "The cluster has no leader, so nothing can be read or changed.", report.path,
        "A majority of the members has to run and to reach each other.")
    ]
  }

  private static func alarms(_ cluster: ClusterReport, _ report: ContainerReport) -> [Finding] {
    cluster.alarms.map { alarm in
      finding(
        .fault,
        alarm == "NOSPACE"
          ? "The database has reached its quota, so nothing can be written."
          : "The cluster reports the alarm \(alarm).",
        report.path,
        alarm == "NOSPACE"
          ? "Compact it (etcdctl compact REVISION), defragment each member, and then:"
          : "See the documentation of etcd for it. When it is mended:",
        "etcdctl alarm disarm")
    }
  }

  private static func unnamed(_ cluster: ClusterReport) -> [Finding] {
    cluster.members.filter { !$0.isNamed }.map { member in
      finding(
        .note, "A member of the cluster is not among the hosts of the container's location.",
        member.endpoint, "Name it, too, so that programs find it when the others are down.")
    }
  }

  private static func size(_ cluster: ClusterReport, _ report: ContainerReport) -> [Finding] {
    guard let largest = cluster.members.compactMap(\.databaseBytes).max(), largest > largeDatabase
    else { return [] }
    return [
      finding(
        .warning,
        "The database has \(largest / 1_000_000) MB; etcd's quota is 2 GB unless it says otherwise.",
        report.path, "Compact it, and defragment each member:", "etcdctl defrag --cluster")
    ]
  }

  private static func history(_ cluster: ClusterReport, _ report: ContainerReport) -> [Finding] {
    guard let oldest = cluster.oldestRevision, cluster.revision - oldest > longHistory else {
      return []
    }
    return [
      finding(
        .warning,
        "The database keeps each of the last \(cluster.revision - oldest) changes, and grows with "
          + "every further one.",
        report.path, "Start the members with:",
        "--auto-compaction-mode=revision --auto-compaction-retention=10000")
    ]
  }

  private static func replacement(_ cluster: ClusterReport) -> [Finding] {
    guard let found = cluster.replacement else { return [] }
    return [
      finding(
        found.date.timeIntervalSinceNow > -recent ? .warning : .note,
        "The cluster came back with an older history, as from a snapshot: at "
          + "\(found.date.secondsText) it had come to revision \(found.found) only, and before to "
          + "\(found.known). What was changed after the snapshot is lost.",
        found.host,
        "Restore a snapshot with etcdutl's --bump-revision and --mark-compacted, so that no revision "
          + "comes twice. This is said until the container's key \"history\" is deleted.")
    ]
  }

  private static func encryption(_ cluster: ClusterReport, _ report: ContainerReport) -> [Finding] {
    guard !cluster.isEncrypted, !cluster.isLoopback else { return [] }
    return [
      finding(
        .warning,
        "Everything goes over the network unencrypted\(cluster.user == nil ? "" : ", the password, too"), "
          + "and everybody who reaches the members can read and change it.",
        report.path, "Set TLS up, and write etcds:// with ca=, and a user or cert= and key=.")
    ]
  }

  private static func slow(_ cluster: ClusterReport, _ report: ContainerReport) -> [Finding] {
    guard let slowest = cluster.members.compactMap(\.roundTrip).max(),
      slowest * 10 > cluster.lifetime
    else { return [] }
    return [
      finding(
        .warning,
        "A round trip takes \(slowest / .milliseconds(1)) ms, which is long for a lifetime of "
          + "\(cluster.lifetime.components.seconds) s: processes may be taken for dead.",
        report.path,
        "Add ?ttl=\(min(60, max(10, slowest.components.seconds * 30))) to the location.")
    ]
  }

  /// A fault of etcd that some of its patch versions have (its change log).
  private struct KnownFault {
    /// "3.4."
    let series: String
    /// The patch versions before this one have it.
    let mended: Int
    let level: Finding.Level
    /// What follows the version.
    let what: String
  }

  private static let forgetfulWatches =
    "may tell changes twice or lose them after a compaction; programs look again every half minute"
  private static let knownFaults = [
    KnownFault(series: "3.4.", mended: 31, level: .note, what: forgetfulWatches),
    KnownFault(series: "3.5.", mended: 13, level: .note, what: forgetfulWatches),
    KnownFault(
      series: "3.5.", mended: 6, level: .warning,
      what: "may differ in its data from other members after it was killed"),
  ]

  private static func versions(
    _ members: [ClusterReport.Member], _ report: ContainerReport
  ) -> [Finding] {
    let versions = members.compactMap(\.version)
    return knownFaults.compactMap { fault in
      let patches = versions.filter { $0.hasPrefix(fault.series) }
        .compactMap { Int($0.dropFirst(fault.series.count)) }
      guard let oldest = patches.min(), oldest < fault.mended else { return nil }
      return finding(
        fault.level,
        "etcd \(fault.series)\(oldest) \(fault.what) (mended in \(fault.series)\(fault.mended)).",
        report.path, "Use a newer version where there is one.")
    }
  }
}

// Clocks and watches.
extension ClusterFindings {
  /// A difference of clocks that people notice.
  private static let largeDifference: Duration = .seconds(1)
  /// A watch takes a tenth of a second for the history of a key.
  private static let slowWatch: Duration = .seconds(1)

  private static func clock(_ member: ClusterReport.Member) -> [Finding] {
    guard let difference = member.clockDifference, abs(difference) > largeDifference else {
      return []
    }
    let seconds = abs(difference).components.seconds
    return [
      finding(
        .warning,
        "This machine's clock is \(seconds) s or more \(difference > .zero ? "ahead of" : "behind") "
          + "that of the member: entries with a delay come at another time than their sender meant, "
          + "and the dates of publications mislead.",
        member.endpoint, "Let both machines set their clocks by NTP.")
    ]
  }

  private static func abs(_ duration: Duration) -> Duration { max(duration, .zero - duration) }

  /// Of a publication that is dated in the future the publisher's clock, or ours, is wrong.
  private static func future(_ report: ContainerReport) -> [Finding] {
    let values = report.names.values + report.own.values
    let now = Date()
    let dated = values.compactMap { value in value.publisher.map { (value, $0) } }
    guard let (value, publisher) = dated.max(by: { $0.1.date < $1.1.date }) else { return [] }
    let ahead = publisher.date.timeIntervalSince(now)
    guard ahead > largeDifference.seconds else { return [] }
    return [
      finding(
        .warning,
        "A publication by \(publisher) is dated \(Int(min(ahead, 3e9))) s in the future, so the "
          + "clock of its machine was ahead, or this machine's is behind.",
        value.path, "Let both machines set their clocks by NTP.")
    ]
  }

  private static func watch(_ member: ClusterReport.Member) -> [Finding] {
    let what: String
    if let failure = member.watchFailure {
      what = "A watch of the member told nothing, although the member answers: \(failure)."
    } else if let delay = member.watchDelay, delay > slowWatch {
      what = "A watch of the member took \(delay / .milliseconds(1)) ms to tell something."
    } else {
      return []
    }
    return [
      finding(
        .warning, what + " Processes that it serves notice changes late, or not at all.",
        member.endpoint,
        "Look at the load of that machine, and whether something between here and there holds "
          + "answers back that do not end, such as a proxy.")
    ]
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
      facts.append("a watch tells within \(Int((slowest / .milliseconds(1)).rounded(.up))) ms")
    }
    if let user { facts.append("as \(user)") }
    return facts.filter { !$0.isEmpty }
  }
}
