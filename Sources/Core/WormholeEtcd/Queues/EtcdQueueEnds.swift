import Wormhole
import WormholeInspection
import WormholeSystem

extension EtcdQueue {
  func watchEnds(_ ends: QueueEnds) throws -> any QueueEndWatching {
    try EtcdEndWatch(self, ends)
  }
}

/// The watch of the ends of a queue's entries: each end changes or deletes `e/<batch>` or
/// `d/<batch>`.
private final class EtcdEndWatch: QueueEndWatching, KeyFollowing {
  private let store: EtcdQueue
  private weak let ends: QueueEnds?
  private let follower: KeyFollower

  init(_ store: EtcdQueue, _ ends: QueueEnds) throws {
    self.store = store
    self.ends = ends
    follower = KeyFollower(store.container, store.range(from: .claims, through: .entries))
    try follower.begin(for: self, until: store.container.soon)
  }

  var count: Int { follower.isWatching ? 1 : 0 }

  func cancel() { follower.cancel() }

  // A waiter that looks learns why a look fails.
  func look(until deadline: ContinuousClock.Instant) throws(EtcdError) -> EtcdMoment {
    try store.container.until(deadline).glance(at: store.range(.claims)).moment
  }

  // On the thread of the watches.
  func hear(_ events: [EtcdEvent], of history: Int) {
    for batch in events.compactMap({ store.batch($0.keyValue.key) }) { ends?.raise(batch) }
  }

  func looked(isNewWatch: Bool) { ends?.raiseAll() }
}
