import Dispatch
import Synchronization
import Wormhole
package import WormholeSystem

/// A range of keys, kept in memory as it changes: read once, then followed by a watch.
///
/// It never goes back in a history: what is not newer than the last revision is dropped. After a break it goes on
/// where it was, and reads the range once more, because old servers may lose events; after a
/// compaction, or if the history was replaced, it reads the range again and watches from there.
package final class EtcdMirror: Watching, EtcdFollower {
  private struct State {
    var items: [[UInt8]: KeyValue] = [:]
    /// What the items are of, at least.
    var moment = EtcdMoment(history: 0, revision: 0)
    var watch: EtcdWatch?
    var isCancelled = false
    /// Whether a thread is reading the range again.
    var isReading = false
    var failure: EtcdError?
  }

  private let container: EtcdContainer
  private let range: KeyRange
  private let signal: @Sendable () -> Void
  private let state = Mutex(State())

  /// - Parameter signal: Called when something has changed, on the thread of the watches, so it must
  ///   not block: raise a latch, enqueue work.
  /// - Throws: `EtcdError`: `.unreachable` and what etcd refuses.
  package init(
    _ container: EtcdContainer, _ range: KeyRange,
    until deadline: ContinuousClock.Instant = CallLimit.deadline,
    _ signal: @escaping @Sendable () -> Void
  ) throws(EtcdError) {
    self.container = container
    self.range = range
    self.signal = signal
    try begin(until: deadline)
    container.add(self)
  }

  deinit { cancel() }

  /// The keys in their order, of one revision at the earliest.
  package var content: EtcdClient.Content {
    state.withLock { state in
      EtcdClient.Content(
        moment: state.moment,
        items: state.items.values.sorted { $0.key.lexicographicallyPrecedes($1.key) })
    }
  }

  /// One key of it, nil if it does not exist, and the moment at which that is known.
  package func state(of key: [UInt8]) -> (item: KeyValue?, seen: EtcdMoment) {
    state.withLock { ($0.items[key], $0.moment) }
  }

  /// One key of it; nil if it does not exist.
  package func item(_ key: [UInt8]) -> KeyValue? { state.withLock { $0.items[key] } }

  /// Why it does not follow any longer, as long as that is so.
  package var failure: EtcdError? { state.withLock { $0.failure } }

  package var detection: ChangeDetection { .events }

  /// Ends the watch.
  package func cancel() {
    let watch = state.withLock { state in
      state.isCancelled = true
      defer { state.watch = nil }
      return state.watch
    }
    watch?.cancel()
  }

  private func begin(until deadline: ContinuousClock.Instant) throws(EtcdError) {
    let found = try container.client.read(range, until: deadline)
    take(found)
    let watch = try container.client.watch(range, after: found.moment) { [weak self] in
      self?.hear($0, of: found.moment.history)
    }
    let old = state.withLock { state -> EtcdWatch? in
      guard !state.isCancelled else { return watch }
      defer { state.watch = watch }
      state.failure = nil
      return state.watch
    }
    old?.cancel()
  }

  private func take(_ found: EtcdClient.Content) {
    state.withLock { state in
      guard found.moment >= state.moment else { return }
      state.moment = found.moment
      state.items = Dictionary(found.items.map { ($0.key, $0) }) { $1 }
    }
  }

  // On the thread of the watches.
  private func hear(_ news: EtcdNews, of history: Int) {
    switch news {
    case .events(let events):
      let isNew = state.withLock { state in
        guard let last = events.last?.keyValue.modified, history == state.moment.history,
          last > state.moment.revision
        else { return false }
        for event in events where event.keyValue.modified > state.moment.revision {
          state.items[event.keyValue.key] = event.kind == .put ? event.keyValue : nil
        }
        state.moment = EtcdMoment(history: history, revision: last)
        return true
      }
      if isNew { signal() }
    case .resumed: readAgain(watching: false)
    case .ended(let error):
      if error.code != .compacted { fail(error) }
      readAgain(watching: true)
    }
  }

  /// Lets its users know that it does not follow any longer, once.
  private func fail(_ error: EtcdError) {
    let isFirst = state.withLock { state in
      defer { state.failure = error }
      return state.failure == nil
    }
    if isFirst { signal() }
  }

  /// Reads the range once more, in case that events were lost.
  package func check() { readAgain(watching: false) }

  private func readAgain(watching: Bool, after pause: Duration = .zero) {
    let mustRead = state.withLock { state in
      guard !state.isCancelled, watching || !state.isReading else { return false }
      state.isReading = true
      return true
    }
    guard mustRead else { return }
    Blocking.queue().asyncAfter(deadline: .now() + pause.dispatchInterval) { [weak self] in
      self?.readNow(watching: watching, pause)
    }
  }

  private func readNow(watching: Bool, _ pause: Duration) {
    state.withLock { $0.isReading = false }
    let deadline = ContinuousClock.now + CallLimit.standardWait
    let before = state.withLock { $0.items }
    do throws(EtcdError) {
      if watching {
        try begin(until: deadline)
      } else {
        take(try container.client.read(range, until: deadline))
      }
      if watching || state.withLock({ $0.items != before }) { signal() }
    } catch {
      // A watch that goes on tells what changes, whatever became of a look beside it.
      if watching { fail(error) }
      // It may be mended, in etcd or on the way there.
      readAgain(watching: watching, after: min(max(pause * 2, .milliseconds(100)), .seconds(5)))
    }
  }
}
