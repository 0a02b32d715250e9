import HTTPTransfers

// What an operator looks at.
extension EtcdClient {
  /// What a member says about itself.
  package struct MemberStatus: Hashable, Sendable {
    package let version: String
    package let memberID: String
    /// Nil while the cluster has none.
    package let leaderID: String?
    package let revision: Int64
    /// The size of its database's file, and how much of it is in use.
    package let databaseBytes: Int64
    package let usedBytes: Int64
    package let roundTrip: Duration
  }

  /// A member as the cluster knows it.
  package struct Member: Hashable, Sendable {
    package let memberID: String
    package let name: String
    /// The addresses that it tells clients.
    package let endpoints: [String]
  }

  /// The addresses of the configuration.
  package var endpoints: [String] { cluster.configuration.endpoints }

  /// Asks one member about itself.
  ///
  /// - Throws: `.unreachable` with what it said.
  package func status(
    of endpoint: String, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> MemberStatus {
    let start = ContinuousClock.now
    let answer: WireStatusAnswer = try cluster.ask(
      endpoint, "maintenance/status", until: deadline)
    return MemberStatus(
      version: answer.version ?? "", memberID: answer.header?.memberId ?? "",
      leaderID: answer.leader.flatMap { $0 == "0" ? nil : $0 },
      revision: answer.header?.revision?.value ?? 0,
      databaseBytes: answer.dbSize?.value ?? 0, usedBytes: answer.dbSizeInUse?.value ?? 0,
      roundTrip: ContinuousClock.now - start)
  }

  /// Returns all members of the cluster.
  package func members(until deadline: ContinuousClock.Instant) throws(EtcdError) -> [Member] {
    let answer: WireMembersAnswer = try cluster.call(
      "cluster/member/list", [String: String](), .repeatable, until: deadline)
    return (answer.members ?? []).map {
      Member(memberID: $0.number ?? "", name: $0.name ?? "", endpoints: $0.addresses ?? [])
    }
  }

  /// Returns the raised alarms: "NOSPACE", "CORRUPT".
  package func alarms(until deadline: ContinuousClock.Instant) throws(EtcdError) -> [String] {
    let answer: WireAlarmsAnswer = try cluster.call(
      "maintenance/alarm", ["action": "GET"], .repeatable, until: deadline)
    return (answer.alarms ?? []).map { $0.alarm ?? "" }.filter { !$0.isEmpty }
  }

  /// Returns the number of keys in a range.
  package func count(
    _ range: KeyRange, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Int {
    var request = WireRangeRequest(range)
    request.countOnly = true
    let answer: WireRangeAnswer = try cluster.call(
      "kv/range", request, .repeatable, until: deadline)
    return Int(answer.count?.value ?? 0)
  }
}

struct WireStatusAnswer: WireAnswer {
  let header: WireHeader?
  let version: String?
  let leader: String?
  let dbSize: WireInteger?
  let dbSizeInUse: WireInteger?
}

struct WireMembersAnswer: WireAnswer {
  struct Member: Decodable {
    enum CodingKeys: String, CodingKey {
      case number = "ID"
      case name
      case addresses = "clientURLs"
    }

    let number: String?
    let name: String?
    let addresses: [String]?
  }

  let header: WireHeader?
  let members: [Member]?
}

struct WireAlarmsAnswer: WireAnswer {
  struct Alarm: Decodable {
    let alarm: String?
  }

  let header: WireHeader?
  let alarms: [Alarm]?
}
