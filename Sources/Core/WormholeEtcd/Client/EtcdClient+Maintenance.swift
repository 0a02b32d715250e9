import WormholeSystem

// The requests of an operator.
extension EtcdClient {
  package struct MemberStatus: Hashable, Sendable {
    package let version: String
    package let memberID: String
    /// Nil while the cluster has no leader.
    package let leaderID: String?
    package let revision: Int64
    /// The size of its database's file, and the part of it in use.
    package let databaseBytes: Int64
    package let usedBytes: Int64
    package let roundTrip: Duration

    init(_ answer: WireAnswer, since start: ContinuousClock.Instant) {
      version = EtcdWire.shown(answer.version ?? "")
      memberID = answer.header?.memberId ?? ""
      leaderID = answer.leader.flatMap { $0 == "0" ? nil : $0 }
      revision = answer.header?.revision?.value ?? 0
      databaseBytes = answer.dbSize?.value ?? 0
      usedBytes = answer.dbSizeInUse?.value ?? 0
      roundTrip = ContinuousClock.now - start
    }
  }

  package var endpoints: [String] { cluster.configuration.endpoints }

  /// - Throws: `.unreachable` with the member's answer.
  package func status(
    of endpoint: String, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> MemberStatus {
    let start = ContinuousClock.now
    return try cluster.ask(
      endpoint, question: .init("maintenance/status"), until: deadline
    ) { answer, _ in MemberStatus(answer, since: start) }
  }

  /// Asks the member that answered last about itself, or the next one.
  func status(until deadline: ContinuousClock.Instant) throws(EtcdError) -> MemberStatus {
    let start = ContinuousClock.now
    return try cluster.call(.init("maintenance/status"), until: deadline) { answer, _ in
      MemberStatus(answer, since: start)
    }
  }

  /// Returns the quota of the database in bytes, by the metrics of the member that answered last;
  /// nil if it reports none there.
  func quota(until deadline: ContinuousClock.Instant) -> Int64? {
    let request = HTTPRequest(
      url: cluster.preferred + "/metrics", content: Array("{}".utf8),
      security: cluster.configuration.security)
    // Some operators serve the metrics at another address; then the standard quota counts.
    let answer = try? cluster.configuration.transport.post(
      request, maximumBytes: AnswerLimit.metrics, until: deadline)
    guard let answer, answer.status == 200 else { return nil }
    let name = "etcd_server_quota_backend_bytes "
    let lines = String(decoding: answer.content, as: UTF8.self).split(separator: "\n")
    guard let line = lines.first(where: { $0.hasPrefix(name) }),
      let bytes = Double(line.dropFirst(name.count)), bytes > 0
    else { return nil }
    return Int64(exactly: bytes.rounded())
  }

  /// Gives up the history before a revision; nothing happens if it was given up already.
  ///
  /// - Parameter waits: Whether the member has freed its pages when this returns.
  func compact(
    before revision: Int64, waits: Bool, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) {
    do throws(EtcdError) {
      try cluster.call(
        .init(
          "kv/compaction", ["revision": .number(revision), "physical": waits ? .yes : nil]),
        until: deadline
      ) { _, _ in () }
    } catch {
      guard error.code == .compacted else { throw error }
    }
  }

  /// Compares a member's clock with this machine's.
  ///
  /// - Returns: How far this machine's clock is ahead, at least; negative if it is behind; zero if
  ///   both may agree, because a member reports whole seconds only. Nil if it reports none.
  /// - Throws: `.unreachable` with its answer.
  package func clockDifference(
    of endpoint: String, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Duration? {
    let asked = Self.now
    let answer: HTTPAnswer
    do throws(HTTPError) {
      // Any answer has the time, even a refusal, so it needs no token.
      answer = try cluster.post(endpoint, .init("maintenance/status"), token: nil, until: deadline)
    } catch {
      throw .unreachable([(endpoint, error.reason)])
    }
    let answered = Self.now
    return answer.date.flatMap(HTTPDate.seconds).map {
      Self.difference(asked: asked, answered: answered, reported: $0)
    }
  }

  /// - Parameters:
  ///   - asked: The time before the question, since 1970, by this machine's clock.
  ///   - answered: The time after the answer.
  ///   - reported: The member's answer in between, cut to whole seconds.
  static func difference(asked: Duration, answered: Duration, reported: Int64) -> Duration {
    let (first, last) = (Duration.seconds(reported), Duration.seconds(reported + 1))
    if asked > last { return asked - last }
    return answered < first ? answered - first : .zero
  }

  private static var now: Duration {
    realTime() - WallTime(seconds: 0, nanoseconds: 0)
  }

  /// Lets one member, and no other, report the history of a key in a watch.
  ///
  /// - Returns: The time until the report.
  /// - Throws: `.unreachable` if it reported nothing in time.
  package func watchDelay(
    of key: [UInt8], at endpoint: String, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Duration {
    var configuration = cluster.configuration
    configuration.endpoints = [endpoint]
    let client = EtcdClient(configuration)
    let start = ContinuousClock.now
    do throws(EtcdError) {
      _ = try client.firstChange(of: key, from: 1, until: deadline)
    } catch {
      // The watch also reports that the history was compacted.
      guard error.code == .compacted else { throw error }
    }
    return .now - start
  }

  func members(until deadline: ContinuousClock.Instant) throws(EtcdError) -> [WireMember] {
    // It has no revision: the members do not belong to the history.
    try cluster.call(.init("cluster/member/list", header: .identity), until: deadline) {
      answer, _ in answer.members ?? []
    }
  }

  /// Returns the raised alarms: "NOSPACE", "CORRUPT".
  package func alarms(until deadline: ContinuousClock.Instant) throws(EtcdError) -> [String] {
    try cluster.call(
      .init("maintenance/alarm", ["action": .word("GET")], header: .optional), until: deadline
    ) { answer, _ in
      (answer.alarms ?? []).map { EtcdWire.shown($0.alarm ?? "") }.filter { !$0.isEmpty }
    }
  }

  /// Returns the number of leases, of all users of the cluster.
  ///
  /// - Throws: `.permissionDenied` for a user who may not see the keys of all of them.
  func leaseCount(until deadline: ContinuousClock.Instant) throws(EtcdError) -> Int {
    try cluster.call(
      .init("lease/leases", maximumBytes: AnswerLimit.keys), until: deadline
    ) { answer, _ in answer.leases?.count ?? 0 }
  }

  package func count(
    _ range: KeyRange, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Int {
    try cluster.call(.init("kv/range", .range(range, countOnly: true)), until: deadline) {
      answer, _ in
      let count = answer.count?.value ?? 0
      return count >= 0 && (answer.kvs ?? []).isEmpty ? Int(exactly: count) : nil
    }
  }
}
