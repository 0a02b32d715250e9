import Dispatch
import Synchronization
import Wormhole
import WormholeInspection
import WormholeSystem

/// What a monitor sees of a container on etcd: one watch of all its keys, whose changes it reads.
///
/// After a compaction that was faster than the watch, the keys are listed again, and those are reported
/// whose revisions have changed.
final class EtcdKeySight: ContainerSight {
  private struct Inbox {
    var events: [[EtcdEvent]] = []
    var mustList = false
    var watch: EtcdWatch?
    var isCancelled = false
  }

  private let container: SharedContainer
  private let etcd: EtcdContainer
  private let range: KeyRange
  private let inbox = Mutex(Inbox())
  private let signal = Mutex<@Sendable () -> Void>({})
  /// The monitor's queue alone uses it, so nobody waits for this lock.
  private let keys: Mutex<EtcdKeys>

  init(
    _ container: SharedContainer, _ etcd: EtcdContainer,
    _ hear: @escaping @Sendable (ContainerEvent) -> Void
  ) {
    self.container = container
    self.etcd = etcd
    let prefix = Array(etcd.formatKey.dropLast("format".utf8.count))
    range = .prefix(prefix)
    keys = Mutex(EtcdKeys(prefix, hear))
  }

  var detection: ChangeDetection { .events }

  func begin(isNew: Bool, _ signal: @escaping @Sendable () -> Void) throws {
    self.signal.withLock { $0 = signal }
    try list(isBeginning: !isNew)
  }

  func look() {
    let (events, mustList) = inbox.withLock { inbox in
      defer { (inbox.events, inbox.mustList) = ([], false) }
      return (inbox.events, inbox.mustList)
    }
    keys.withLock { keys in for change in events { keys.take(change) } }
    guard mustList else { return }
    do {
      try list(isBeginning: false)
    } catch {
      // It may be mended, in etcd or on the way there.
      Blocking.timers.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in self?.listAgain()
      }
    }
  }

  func cancel() {
    let watch = inbox.withLock { inbox in
      inbox.isCancelled = true
      return inbox.watch
    }
    watch?.cancel()
  }

  private func listAgain() {
    inbox.withLock { $0.mustList = true }
    signal.withLock { $0 }()
  }

  /// Reads all keys, and watches from their revision on.
  private func list(isBeginning: Bool) throws {
    let deadline = ContinuousClock.now + CallLimit.standardWait
    let client = etcd.client
    let found = try client.read(range, keysOnly: true, until: deadline)
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
    keys.withLock { keys in
      if isBeginning { keys.begin(with: values) } else { keys.takeMissed(values, of: found.items) }
      keys.known = Dictionary(found.items.map { ($0.key, $0.modified) }) { $1 }
    }
    let watch = try client.watch(range, after: found.moment) { [weak self] in self?.hear($0) }
    let old = inbox.withLock { inbox in
      defer { inbox.watch = watch }
      return inbox.isCancelled ? watch : inbox.watch
    }
    old?.cancel()
  }

  // On the thread of the watches.
  private func hear(_ news: EtcdNews) {
    switch news {
    case .events(let events):
      inbox.withLock { $0.events.append(events) }
      signal.withLock { $0 }()
    case .resumed: return
    case .ended: listAgain()
    }
  }
}
