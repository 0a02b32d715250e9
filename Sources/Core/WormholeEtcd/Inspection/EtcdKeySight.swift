import Synchronization
import Wormhole
import WormholeInspection
import WormholeSystem

/// A monitor's sight of a container on etcd: it follows all keys, and reads the changed ones.
///
/// After a compaction that was faster than the watch, and now and then, the keys are listed again,
/// and keys with changed revisions are reported.
final class EtcdKeySight: ContainerSight {
  private let etcd: EtcdContainer
  private let range: KeyRange
  /// The events to report, in the order of arrival.
  private let news = Mutex<[EtcdKeys.News]>([])
  /// Whether the first listing, of the existing keys, is still to come.
  private let isBeginning = Mutex(false)
  private let keys: Mutex<EtcdKeys>
  private let follower = Mutex<KeyFollower?>(nil)

  init(_ etcd: EtcdContainer, _ hear: @escaping @Sendable (ContainerEvent) -> Void) {
    self.etcd = etcd
    let prefix = Array(etcd.formatKey.dropLast("format".utf8.count))
    range = .prefix(prefix)
    keys = Mutex(EtcdKeys(prefix, hear))
  }

  var detection: ChangeDetection { .events }

  func begin(isNew: Bool, _ signal: @escaping @Sendable () -> Void) throws {
    isBeginning.withLock { $0 = !isNew }
    let follower = KeyFollower(
      etcd, range,
      .init(
        look: { [weak self] deadline throws(EtcdError) in
          try self?.list(until: deadline) ?? EtcdMoment.none
        },
        events: { [weak self] events, history in
          self?.news.withLock { $0.append(.events(events, history: history)) }
          signal()
        },
        looked: { _ in signal() }))
    try follower.begin(until: .now + CallLimit.standardWait)
    self.follower.withLock { $0 = follower }
    look()
  }

  func look() {
    let news = news.withLock { news in
      defer { news = [] }
      return news
    }
    keys.withLock { keys in for next in news { keys.take(next) } }
  }

  func cancel() { follower.withLock { $0 }?.cancel() }

  /// Lists all keys, and reads those that differ from the known state.
  private func list(until deadline: ContinuousClock.Instant) throws(EtcdError) -> EtcdMoment {
    let client = etcd.client
    let found = try client.read(range, keysOnly: true, until: deadline)
    let isBeginning = isBeginning.withLock { isBeginning in
      defer { isBeginning = false }
      return isBeginning
    }
    var values: [KeyValue] = []
    if isBeginning {
      for range in EtcdKeys.begin.map({ KeyRange.prefix(etcd.key($0.letter, isOwn: $0.isOwn)) }) {
        values += try client.read(range, until: deadline).items
      }
    } else {
      for item in keys.withLock({ $0.changed(in: found.items) }) {
        values += try client.page(.key(item.key), limit: 1, until: deadline).items
      }
    }
    news.withLock { $0.append(.listing(found, values: values, isBeginning: isBeginning)) }
    return found.moment
  }
}
