import Dispatch
import Synchronization
import WormholeSystem

/// Notifies callers that wait for the end of entries which batches to look at again: one watch for
/// all callers, for as long as any of them waits. A caller first registers and then looks, so no end
/// is missed.
package final class QueueEnds: Sendable {
  private struct State {
    var waiting: [EntryFile: [WakeLatch]] = [:]
    var watch: (any Cancelling)?
  }

  private let store: any QueueStore
  private let state = Mutex(State())
  /// The queue on which watches begin and end, one call after another.
  private let control = Blocking.queue()

  init(_ store: any QueueStore) { self.store = store }

  /// Adds a latch that is raised whenever something happens to a batch from now on.
  ///
  /// - Parameter caller: The queue for a caller with a deadline; the watch begins through it.
  func add(
    _ latch: WakeLatch, _ batch: EntryFile, watching caller: (any QueueStore)? = nil
  ) throws {
    state.withLock { $0.waiting[batch, default: []].append(latch) }
    do {
      try control.sync {
        guard state.withLock({ $0.watch == nil }) else { return }
        let watch = try (caller ?? store).watchEnds(self)
        state.withLock { $0.watch = watch }
      }
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
      // A waiter that arrived in the meantime has found the watch, or begins its own after this.
      let ended = state.withLock { $0.waiting.isEmpty ? $0.watch.take() : nil }
      ended?.cancel()
    }
  }

  /// Something may have happened to a batch.
  package func raise(_ batch: EntryFile) {
    for latch in state.withLock({ $0.waiting[batch] ?? [] }) { latch.raise() }
  }

  /// Something may have happened to any batch.
  package func raiseAll() {
    for latch in state.withLock({ $0.waiting.values.flatMap { $0 } }) { latch.raise() }
  }

  /// The watch, as long as a caller waits.
  var watch: (any Cancelling)? { state.withLock(\.watch) }
}
