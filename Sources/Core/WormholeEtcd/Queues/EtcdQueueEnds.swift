import Dispatch
import Synchronization
import Wormhole
import WormholeInspection
import WormholeSystem

/// The watch that notifies callers waiting for the end of entries which batches to look at again:
/// one for all callers, for as long as any of them waits. Each end changes or deletes `e/<batch>`
/// or `d/<batch>`.
final class EtcdQueueEnds: QueueEnds, KeyFollowing {
  private struct State {
    var waiting: [EntryFile: [WakeLatch]] = [:]
    var follower: KeyFollower?
  }

  private let store: EtcdQueue
  private let state = Mutex(State())
  /// The queue on which following begins and ends, one call after another.
  private let control = Blocking.queue()

  init(_ store: EtcdQueue) { self.store = store }

  func add(_ latch: WakeLatch, _ batch: EntryFile) throws {
    state.withLock { $0.waiting[batch, default: []].append(latch) }
    do {
      try control.sync { if state.withLock({ $0.follower == nil }) { try begin() } }
    } catch {
      remove(latch, batch)
      throw error
    }
  }

  func remove(_ latch: WakeLatch, _ batch: EntryFile) {
    let isLast = state.withLock { state in
      state.waiting[batch]?.removeAll { $0 === latch }
      if state.waiting[batch]?.isEmpty == true { state.waiting[batch] = nil }
      return state.waiting.isEmpty
    }
    guard isLast else { return }
    control.async { [self] in
      // A waiter that arrived in the meantime has found the watch, or makes its own after this.
      let ended = state.withLock { state -> KeyFollower? in
        guard state.waiting.isEmpty else { return nil }
        defer { state.follower = nil }
        return state.follower
      }
      ended?.cancel()
    }
  }

  var watches: Int { state.withLock { $0.follower?.isWatching == true ? 1 : 0 } }

  private func begin() throws {
    let follower = KeyFollower(store.container, store.range(from: .claims, through: .entries))
    try follower.begin(for: self, until: store.container.soon)
    state.withLock { $0.follower = follower }
  }

  // A waiter that looks learns why a look fails.
  func look(until deadline: ContinuousClock.Instant) throws(EtcdError) -> EtcdMoment {
    try store.container.until(deadline).glance(at: store.range(.claims)).moment
  }

  // On the thread of the watches.
  func hear(_ events: [EtcdEvent], of history: Int) {
    for event in events {
      guard let batch = store.batch(event.keyValue.key) else { continue }
      for latch in state.withLock({ $0.waiting[batch] ?? [] }) { latch.raise() }
    }
  }

  func looked(isNewWatch: Bool) {
    for latch in state.withLock({ $0.waiting.values.flatMap { $0 } }) { latch.raise() }
  }
}
