import WormholeInspection

extension EtcdClient {
  /// How long one member may take for its answer about itself.
  static let memberPatience: Duration = .seconds(2)

  /// Asks a member about itself; its status is nil if it did not answer.
  func member(
    at endpoint: String, until deadline: ContinuousClock.Instant? = nil
  ) -> (member: ClusterReport.Member, status: MemberStatus?) {
    var member = ClusterReport.Member(endpoint: endpoint)
    let limit = ContinuousClock.now + Self.memberPatience
    do throws(EtcdError) {
      let status = try status(of: endpoint, until: min(limit, deadline ?? limit))
      member.version = status.version
      member.isLeader = status.leaderID == status.memberID
      member.revision = status.revision
      member.databaseBytes = status.databaseBytes
      member.usedBytes = status.usedBytes
      member.roundTrip = status.roundTrip
      return (member, status)
    } catch {
      let prefix = endpoint + ": "
      member.failure =
        error.reason.hasPrefix(prefix)
        ? String(error.reason.dropFirst(prefix.count)) : error.reason
      return (member, nil)
    }
  }
}

extension ClusterReport {
  /// What a location says of its cluster.
  init(of location: EtcdLocation, through client: EtcdClient) {
    self.init()
    user = location.user
    lifetime = location.lifetime
    isEncrypted = client.endpoints.allSatisfy { $0.hasPrefix("https:") }
    isLoopback = client.endpoints.allSatisfy(EtcdLocation.isLoopback)
  }
}
