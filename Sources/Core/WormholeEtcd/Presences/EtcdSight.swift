import Dispatch
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
      try EtcdMirror(presence.etcd, presence.members, signal)
    }
    self.mirror.withLock { $0 = mirror }
    return mirror
  }

  func current() throws -> [PresenceMember] { try look(last: nil).live }

  func lookAgain() { signal.withLock { $0 }() }

  func retry() { lookAgain() }

  // While etcd does not answer, what was known last counts.
  func look(last: [PresenceMember]?) throws -> PresenceLook {
    presence.look(in: mirror.withLock { $0 }?.content.items ?? [])
  }

  // The end of its session has removed it.
  func retire(_ dead: [PresenceMember]) {}

  func cancel() { mirror.withLock { $0 }?.cancel() }
}

/// The watch for new names of presences: the first registration of a name creates its key `last`, which
/// stays.
final class EtcdNameWatch: Cancelling {
  private let etcd: EtcdContainer
  private let range: KeyRange
  private let signal: @Sendable () -> Void
  private let watch = Mutex<(watch: EtcdWatch?, isCancelled: Bool)>((nil, false))

  private static let retry: Duration = .seconds(1)

  init(
    _ etcd: EtcdContainer, isOwn: Bool, _ signal: @escaping @Sendable () -> Void
  ) throws(EtcdError) {
    self.etcd = etcd
    self.signal = signal
    range = .prefix(etcd.key("p", isOwn: isOwn))
    try begin()
  }

  deinit { cancel() }

  func cancel() {
    let old = watch.withLock { watch in
      watch.isCancelled = true
      return watch.watch
    }
    old?.cancel()
  }

  private func begin() throws(EtcdError) {
    let now = try etcd.client.page(
      range, keysOnly: true, limit: 1, until: EtcdPresence.standardDeadline)
    let new = try etcd.client.watch(range, after: now.moment) { [weak self] in
      self?.hear($0)
    }
    let isCancelled = watch.withLock { watch in
      watch.watch = new
      return watch.isCancelled
    }
    if isCancelled { new.cancel() }
  }

  // On the thread of the watches.
  private func hear(_ news: EtcdNews) {
    switch news {
    case .events(let events):
      let isNew = events.contains { event in
        event.kind == .put && event.keyValue.created == event.keyValue.modified
          && event.keyValue.key.suffix(5).elementsEqual("/last".utf8)
      }
      if isNew { signal() }
    case .resumed: signal()
    case .ended: beginAgain(after: .zero)
    }
  }

  private func beginAgain(after pause: Duration) {
    Blocking.queue().asyncAfter(deadline: .now() + pause.dispatchInterval) { [weak self] in
      guard let self, !self.watch.withLock(\.isCancelled) else { return }
      do throws(EtcdError) {
        try self.begin()
        self.signal()
      } catch {
        // It may be mended, in etcd or on the way there.
        self.beginAgain(after: Self.retry)
      }
    }
  }
}
