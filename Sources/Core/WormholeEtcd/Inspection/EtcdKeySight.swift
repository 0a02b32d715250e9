import Synchronization
import Wormhole
import WormholeInspection
import WormholeSystem

/// A monitor's sight of a container on etcd: it follows all keys, and reads the changed ones.
///
/// After a compaction that was faster than the watch, and now and then, the keys are listed again,
/// and keys with changed revisions are reported.
final class EtcdKeySight: ContainerSight, KeyFollowing {
  private let etcd: EtcdContainer
  /// The events to report, in the order of arrival.
  private let news = Mutex<[EtcdKeys.News]>([])
  /// Whether the first listing, of the existing keys, is still to come.
  private let isBeginning = Mutex(false)
  private let keys: Mutex<EtcdKeys>
  private let follower: KeyFollower
  private let signal = Mutex<@Sendable () -> Void>({})

  init(_ etcd: EtcdContainer, _ hear: @escaping @Sendable (ContainerEvent) -> Void) {
    self.etcd = etcd
    keys = Mutex(EtcdKeys(etcd.start, hear))
    follower = KeyFollower(etcd, etcd.keys)
  }

  var detection: ChangeDetection { .events }

  func begin(isNew: Bool, _ signal: @escaping @Sendable () -> Void) throws {
    isBeginning.withLock { $0 = !isNew }
    self.signal.withLock { $0 = signal }
    try follower.begin(for: self, until: .now + CallLimit.standardWait)
    look()
  }

  func look() {
    let news = news.withLock { exchange(&$0, with: []) }
    keys.withLock { keys in for next in news { keys.take(next) } }
  }

  func cancel() { follower.cancel() }

  func hear(_ events: [EtcdEvent], of history: Int) {
    news.withLock { $0.append(.events(events, history: history)) }
    signal.withLock { $0 }()
  }

  func looked(isNewWatch: Bool) { signal.withLock { $0 }() }

  /// Lists all keys, and reads those that differ from the known state.
  func look(until deadline: ContinuousClock.Instant) throws(EtcdError) -> EtcdMoment {
    let call = etcd.until(deadline)
    let found = try call.read(follower.range, keysOnly: true)
    let isBeginning = isBeginning.withLock { exchange(&$0, with: false) }
    var values: [KeyValue] = []
    if isBeginning {
      for range in EtcdKeys.begin.map({ KeyRange.prefix(etcd.key($0.letter, isOwn: $0.isOwn)) }) {
        values += try call.read(range).items
      }
    } else {
      for item in keys.withLock({ $0.changed(in: found.items) }) {
        values += try call.read(.key(item.key)).items
      }
    }
    news.withLock { $0.append(.listing(found, values: values, isBeginning: isBeginning)) }
    return found.moment
  }
}
