import Synchronization
import Wormhole
import WormholeSystem

/// The members of a presence on etcd as they change: a mirror of their keys.
final class EtcdSight: PresenceSight {
  private let presence: EtcdPresence
  private let mirror = Mutex<EtcdMirror?>(nil)
  private let signal = Mutex<@Sendable () -> Void>({})

  init(_ presence: EtcdPresence) {
    self.presence = presence
  }

  func begin(_ signal: @escaping @Sendable () -> Void) throws -> (any Watching)? {
    self.signal.withLock { $0 = signal }
    let mirror = try reporting("watch who is present", path: presence.path) {
      try EtcdMirror(presence.etcd, range: presence.members) { _ in signal() }
    }
    self.mirror.withLock { $0 = mirror }
    return mirror
  }

  func lookAgain() { signal.withLock { $0 }() }

  func retry() { lookAgain() }

  // While etcd does not answer, the last known state counts.
  func look(last: [PresenceMember]?) throws -> PresenceLook {
    presence.look(in: mirror.withLock { $0 }?.content.items ?? [])
  }

  // The end of its session has removed it.
  func retire(_ dead: [PresenceMember]) {}

  func cancel() { mirror.withLock { $0 }?.cancel() }
}
