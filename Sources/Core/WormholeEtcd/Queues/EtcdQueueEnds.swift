import Dispatch
import Synchronization
import Wormhole
import WormholeSystem

/// The watch that tells callers that wait for the end of entries which batches to look at again: one
/// for all of them, for as long as any of them waits. Each end changes or deletes `e/<batch>` or
/// `d/<batch>`.
final class EtcdQueueEnds: QueueEnds {
  private struct State {
    var waiting: [EntryFile: [WakeLatch]] = [:]
    var watch: EtcdWatch?
  }

  private let store: EtcdQueue
  private let state = Mutex(State())
  /// The queue on which the watch is made and ended, one call after another.
  private let control = Blocking.queue()

  init(_ store: EtcdQueue) { self.store = store }

  func add(_ latch: WakeLatch, _ batch: EntryFile) throws {
    state.withLock { $0.waiting[batch, default: []].append(latch) }
    do {
      try control.sync { if state.withLock({ $0.watch == nil }) { try begin() } }
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
      let ended = state.withLock { state -> EtcdWatch? in
        guard state.waiting.isEmpty else { return nil }
        defer { state.watch = nil }
        return state.watch
      }
      ended?.cancel()
    }
  }

  var watches: Int { state.withLock { $0.watch == nil ? 0 : 1 } }

  private func begin() throws {
    let moment = try store.client.page(
      store.range("d/"), keysOnly: true, limit: 1, until: store.soon
    ).moment
    let range = KeyRange.range(from: store.key("d/"), to: store.key("e0"))
    let watch = try store.client.watch(range, after: moment) { [weak self] in self?.hear($0) }
    state.withLock { $0.watch = watch }
  }

  // On the thread of the watches.
  private func hear(_ news: EtcdNews) {
    switch news {
    case .events(let events):
      for event in events {
        guard let batch = store.batch(event.keyValue.key) else { continue }
        for latch in state.withLock({ $0.waiting[batch] ?? [] }) { latch.raise() }
      }
    case .resumed: raiseAll()
    case .ended: control.async { [weak self] in self?.beginAgain() }
    }
  }

  private func raiseAll() {
    for latch in state.withLock({ $0.waiting.values.flatMap { $0 } }) { latch.raise() }
  }

  private func beginAgain() {
    guard state.withLock({ $0.watch != nil && !$0.waiting.isEmpty }) else { return }
    do {
      try begin()
    } catch {
      // It may be mended; a waiter that looks meanwhile learns the reason.
      control.asyncAfter(deadline: .now() + 1) { [weak self] in self?.beginAgain() }
    }
    raiseAll()
  }
}
