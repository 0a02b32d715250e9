package import EtcdClient
import HTTPTransfers
import SystemCalls

/// A cluster of three members on loopback, each of which can be killed, stopped and started again.
package final class EtcdMembers: Sendable {
  package let nodes: [EtcdNode]

  package init() throws {
    let peers = try (0..<3).map { _ in "http://127.0.0.1:\(try EtcdNode.freePort())" }
    nodes = try peers.indices.map {
      // Three times as quick as by default: tests wait for elections.
      try EtcdNode(
        scheme: "http", flags: ["--heartbeat-interval", "50", "--election-timeout", "500"],
        index: $0, of: peers)
    }
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
  package func leader() throws -> Int {
    var found: Int?
    try eventually("the members have a leader") {
      let states = nodes.map { node in
        do {
          return try Self.status(of: node)
        } catch {
          // It is killed, or has not begun to answer.
          return ("", "")
        }
      }
      found = states.firstIndex { !$0.0.isEmpty && $0.0 == $0.1 }
      return found != nil
    }
    guard let found else { throw NeverHappened(what: "the members have a leader") }
    return found
  }

  /// The numbers of a member and of its leader.
  private static func status(of node: EtcdNode) throws -> (member: String, leader: String) {
    let answer = try node.ask("maintenance/status", "{}")
    func field(_ name: String) -> String {
      let parts = answer.split(separator: "\"", omittingEmptySubsequences: false)
      // "name":"value"
      guard let place = parts.firstIndex(of: Substring(name)), place + 2 < parts.count else {
        return ""
      }
      return String(parts[place + 2])
    }
    return (field("member_id"), field("leader"))
  }
}
