import Wormhole
import WormholeSystem

/// The members of a presence on etcd as they change: a mirror of their keys.
final class EtcdMembershipWatch: MembershipWatch {
  private let presence: EtcdPresence
  private let mirror: EtcdMirror

  init(_ presence: EtcdPresence, _ signal: @escaping @Sendable () -> Void) throws {
    self.presence = presence
    mirror = try reporting("watch who is present", path: presence.path) {
      try EtcdMirror(presence.etcd, range: presence.members) { _ in signal() }
    }
  }

  var detection: ChangeDetection { mirror.detection }

  // While etcd does not answer, the last known state counts.
  func look(last: [PresenceMember]?) throws -> PresenceListing {
    presence.look(in: mirror.content.items)
  }

  // The end of its session has removed it.
  func retire(_ dead: [PresenceMember]) {}

  func cancel() { mirror.cancel() }
}
