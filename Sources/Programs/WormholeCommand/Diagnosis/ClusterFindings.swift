import FoundationEssentials
import Wormhole
import WormholeInspection

struct ClusterFindings {
  private let cluster: ClusterReport
  private let report: ContainerReport
  private var found: [Finding] = []

  /// A larger database is near etcd's default quota, 2 GB.
  private static let largeDatabase: Int64 = 1_600_000_000
  /// A longer history was not compacted as the documentation recommends.
  private static let longHistory: Int64 = 1_000_000
  /// More leases, or keys of one container, than processes and their work need.
  private static let manyLeases = 10_000
  private static let manyKeys = 1_000_000
  /// How long a loss of history is worse than a note: a week.
  private static let recent: TimeInterval = 7 * 86_400
  /// How long before its end a certificate is reported: a month.
  private static let certificateNotice: TimeInterval = 30 * 86_400
  /// A difference of clocks that people notice.
  private static let largeDifference: Duration = .seconds(1)
  /// A watch takes a tenth of a second for the history of a key.
  private static let slowWatch: Duration = .seconds(1)

  /// Faults of etcd in the patch versions of a series before one (its change log), and what follows
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

  /// The findings about a cluster whose container cannot be opened; none for a directory.
  static func ofMembers(at location: String) throws -> [Finding] {
    guard let place = try Engines.location(location) as? any ClusterLocation else { return [] }
    return of(try place.members(), of: ContainerReport(path: Engines.withoutPassword(location)))
  }

  static func of(_ cluster: ClusterReport, of report: ContainerReport) -> [Finding] {
    var findings = ClusterFindings(cluster: cluster, report: report)
    findings.addFailures()
    findings.addDangers()
    findings.addCertificates()
    findings.addKnownFaults()
    for member in cluster.members where member.isNamed { findings.addDelays(of: member) }
    findings.addFuture()
    return findings.found
  }

  /// - Parameter path: Nil for the container's.
  private mutating func add(
    _ level: Finding.Level, _ what: String, at path: String? = nil, advice: String,
    command: String? = nil
  ) {
    found.append(
      Finding(
        kind: .cluster, ownLevel: level, what: what, path: path ?? report.path, advice: advice,
        command: command))
  }

  private mutating func addFailures() {
    let all = cluster.members.count
    let silent = cluster.members.filter { $0.isNamed && $0.failure != nil }
    let (left, quorum) = (all - silent.count, all / 2 + 1)
    let rest = left >= quorum ? "." : ": nothing can be changed."
    for member in silent {
      add(
        left >= quorum ? .warning : .fault,
        "A member does not answer: \(member.failure ?? "for an unknown reason"). \(left) of \(all) are "
          + "left, and \(quorum) are needed" + rest,
        at: member.endpoint, advice: "Look at that machine, and at its etcd.")
    }
    if !cluster.hasLeader, cluster.members.contains(where: { $0.failure == nil }) {
      add(
        .fault, "The cluster has no leader, so nothing can be read or changed.",
        advice: "A majority of the members has to run and to reach each other.")
    }
    for alarm in cluster.alarms {
      let isFull = alarm == "NOSPACE"
      add(
        .fault,
        isFull
          ? "The database has reached its quota, so nothing can be written."
          : "The cluster reports the alarm \(alarm).",
        advice: isFull
          ? "Compact it (etcdctl compact REVISION), defragment each member, and then:"
          : "See the documentation of etcd for it. When it is mended:",
        command: "etcdctl alarm disarm")
    }
  }

  /// What will not work, or is lost, or is not safe.
  private mutating func addDangers() {
    for member in cluster.members where !member.isNamed {
      add(
        .note, "A member of the cluster is not among the hosts of the container's location.",
        at: member.endpoint,
        advice: "Name it, too, so that programs find it when the others are down.")
    }
    let largest = cluster.members.compactMap(\.databaseBytes).max() ?? 0
    if largest > Self.largeDatabase {
      add(
        .warning,
        "The database has \(largest / 1_000_000) MB; etcd's quota is 2 GB unless it says otherwise.",
        advice: "Compact it, and defragment each member:", command: "etcdctl defrag --cluster")
    }
    let changes = cluster.revision - (cluster.oldestRevision ?? cluster.revision)
    if changes > Self.longHistory {
      add(
        .warning,
        "The database keeps each of the last \(changes) changes, and grows with every further one.",
        advice: "Start the members with:",
        command: "--auto-compaction-mode=periodic --auto-compaction-retention=5m")
    }
    for prefix in cluster.nested {
      add(
        .warning,
        "The container \"\(prefix)\" and this one have keys in common, so each takes those of the "
          + "other for its own.",
        advice: "Give them prefixes of which neither begins with the other, and copy one there.")
    }
    if let leases = cluster.leases, leases > Self.manyLeases {
      add(
        .warning,
        "The cluster has \(leases) leases, each of which its members have to remember and to end.",
        advice: "Values with an expiry in hours take one each. Look whether another program grants "
          + "leases and forgets them:", command: "etcdctl lease list")
    }
    if let keys = cluster.keys, keys > Self.manyKeys {
      add(
        .warning, "The container has \(keys) keys, all of which etcd keeps in memory.",
        advice: "Remove what is not needed:", command: "wormhole doctor --sweep")
    }
    if let found = cluster.replacement {
      add(
        found.date.timeIntervalSinceNow > -Self.recent ? .warning : .note,
        "The cluster came back with an older history, as from a snapshot: at "
          + "\(found.date.secondsText) it had come to revision \(found.found) only, and before to "
          + "\(found.known). What was changed after the snapshot is lost.",
        at: found.host,
        advice:
          "Restore a snapshot with etcdutl's --bump-revision and --mark-compacted, so that no "
          + "revision comes twice. This is said until the container's key \"history\" is deleted.")
    }
    if !cluster.isEncrypted, !cluster.isLoopback {
      let password = cluster.user == nil ? "" : ", the password, too"
      add(
        .warning,
        "Everything goes over the network unencrypted\(password), and everybody who reaches the "
          + "members can read and change it.",
        advice: "Set up TLS, and write etcds:// with ca=, and a user or cert= and key=.")
    }
    let slowest = cluster.members.compactMap(\.roundTrip).max() ?? .zero
    if slowest > .zero, slowest * 10 > cluster.lifetime {
      add(
        .warning,
        "A round trip takes \(slowest / .milliseconds(1)) ms, which is long for a lifetime of "
          + "\(cluster.lifetime.components.seconds) s: processes may be taken for dead.",
        advice: "Add ?ttl=\(min(60, max(10, slowest.components.seconds * 30))) to the location.")
    }
  }

  private mutating func addCertificates() {
    for certificate in cluster.certificates {
      let left = certificate.end.timeIntervalSinceNow
      if left < Self.certificateNotice {
        add(
          left < 0 ? .fault : .warning,
          left < 0
            ? "The certificate ended at \(certificate.end.secondsText)."
            : "The certificate ends at \(certificate.end.secondsText). Then nothing works until there is "
              + "another one.",
          at: certificate.place, advice: "Let the authority of the cluster sign a new one.")
      }
      if certificate.isOwn, let name = certificate.commonName {
        add(
          cluster.user == nil ? .note : .warning,
          "The certificate has a common name (CN), \(name.quoted): a cluster that has users refuses it.",
          at: certificate.place, advice: "Make one without a common name, with openssl by:",
          command: "-subj /O=NAME")
      }
    }
  }

  private mutating func addKnownFaults() {
    let versions = cluster.members.filter(\.isNamed).compactMap(\.version)
    for (series, mended, level, what) in Self.knownFaults {
      let patches = versions.filter { $0.hasPrefix(series) }.compactMap {
        Int($0.dropFirst(series.count))
      }
      guard let oldest = patches.min(), oldest < mended else { continue }
      add(
        level, "etcd \(series)\(oldest) \(what) (mended in \(series)\(mended)).",
        advice: "Use a newer version where there is one.")
    }
  }

  private mutating func addDelays(of member: ClusterReport.Member) {
    let difference = member.clockDifference ?? .zero
    let size = max(difference, .zero - difference)
    if size > Self.largeDifference {
      add(
        .warning,
        "This machine's clock is \(size.components.seconds) s or more "
          + "\(difference > .zero ? "ahead of" : "behind") that of the member: entries with a delay come "
          + "at another time than their sender meant, and the dates of publications mislead.",
        at: member.endpoint, advice: "Let both machines set their clocks by NTP.")
    }
    let what: String
    if let failure = member.watchFailure {
      what = "A watch of the member reported nothing, although the member answers: \(failure)."
    } else if let delay = member.watchDelay, delay > Self.slowWatch {
      what = "A watch of the member took \(delay / .milliseconds(1)) ms to report a change."
    } else {
      return
    }
    add(
      .warning, what + " Processes that it serves notice changes late, or not at all.",
      at: member.endpoint,
      advice:
        "Look at the load of that machine, and whether something between here and there holds "
        + "answers back that do not end, such as a proxy.")
  }

  /// If a publication is dated in the future, the publisher's clock, or ours, is wrong.
  private mutating func addFuture() {
    let values = report.names.values + report.own.values
    let dated = values.compactMap { value in value.publisher.map { (value, $0) } }
    guard let (value, publisher) = dated.max(by: { $0.1.date < $1.1.date }) else { return }
    let ahead = publisher.date.timeIntervalSinceNow
    guard ahead > Self.largeDifference.seconds else { return }
    add(
      .warning,
      "A publication by \(publisher) is dated \(Int(min(ahead, 3e9))) s in the future, so the "
        + "clock of its machine was ahead, or this machine's is behind.",
      at: value.path, advice: "Let both machines set their clocks by NTP.")
  }
}

extension ClusterReport {
  var lines: [String] {
    let named = members.filter(\.isNamed)
    let answering = named.filter { $0.failure == nil }
    let leader = members.first(where: \.isLeader).map { leader in
      leader.name.flatMap { $0.isEmpty ? nil : $0 } ?? leader.endpoint
    }
    let facts =
      Set(answering.compactMap(\.version)).sorted().map { "etcd \($0)" } + [
        "\(members.count) \(members.count == 1 ? "member" : "members")",
        answering.count < named.count ? "\(answering.count) of \(named.count) answer" : nil,
        leader.map { "leader \($0)" } ?? "no leader", "revision \(revision)",
        oldestRevision.map { "history from \($0)" },
        answering.compactMap(\.databaseBytes).max().map {
          "database \(($0 + 999_999) / 1_000_000) MB"
        },
        answering.compactMap(\.roundTrip).min().map { fastest in
          let tenths = Int(fastest / .microseconds(100))
          return "round trip \(tenths / 10).\(tenths % 10) ms"
        },
        answering.compactMap(\.watchDelay).max().map {
          "a watch reports within \(Int(($0 / .milliseconds(1)).rounded(.up))) ms"
        },
        user.map { "as \($0)" },
      ]
    return facts.compactMap(\.self)
  }
}
