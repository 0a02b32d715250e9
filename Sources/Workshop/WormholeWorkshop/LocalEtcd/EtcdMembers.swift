package import WormholeEtcd
import WormholeSystem

/// A cluster on loopback, each member of which can be killed, stopped and started again.
package final class EtcdMembers: Sendable {
  package let nodes: [EtcdNode]

  package init(_ count: Int, _ setting: EtcdNode.Setting) throws {
    let peers = try (0..<count).map { _ in "http://127.0.0.1:\(try EtcdNode.freePort())" }
    var setting = setting
    if !setting.isMeasured {
      // Twice as quick as by default: elections are waited for.
      setting.flags += ["--heartbeat-interval", "50", "--election-timeout", "500"]
    }
    nodes = try peers.indices.map { [setting] in try EtcdNode(setting, index: $0, of: peers) }
  }

  /// A client that asks a member first, and the next ones after it.
  package func client(
    first: Int = 0, _ change: (inout EtcdConfiguration) -> Void = { _ in }
  ) -> EtcdClient {
    nodes[first].client {
      $0.endpoints = nodes.indices.map { nodes[($0 + first) % nodes.count].endpoint }
      change(&$0)
    }
  }

  /// Waits for a leader, and returns its place.
  package func leader(
    until deadline: ContinuousClock.Instant = .now + .seconds(30)
  ) throws -> Int {
    var found: Int?
    _ = poll(until: deadline) {
      found = leaderNow()
      return found != nil
    }
    guard let found else { throw EtcdError(.unreachable, "the members have no leader") }
    return found
  }

  /// The place of the leader; nil if no member claims to lead.
  package func leaderNow() -> Int? {
    nodes.firstIndex { node in
      let status = Self.status(of: node)
      return status.map { $0.memberID == $0.leaderID } ?? false
    }
  }

  /// Lets a member lead.
  ///
  /// - Throws: `EtcdError` or an error of the transfer, if there is no leader or it does not agree.
  package func lead(_ place: Int) throws {
    guard let leader = leaderNow(), let status = Self.status(of: nodes[place]) else {
      throw EtcdError(.unreachable, "there is no leader that could hand its role over")
    }
    try nodes[leader].ask(
      "maintenance/transfer-leadership", #"{"targetID":"\#(status.memberID)"}"#,
      patience: .seconds(2))
  }

  private static func status(of node: EtcdNode) -> EtcdClient.MemberStatus? {
    // A member that was killed or stopped, or has not begun to answer, has none.
    try? node.client().status(of: node.endpoint, until: .now + .seconds(1))
  }
}
