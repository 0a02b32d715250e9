import Synchronization
import Wormhole
import WormholeSystem

/// A range of keys, kept up to date in memory: read once, then followed by a watch.
///
/// It never goes back in a history: events no newer than the last revision are dropped. After a
/// break it continues, and reads the range once more, because old servers may lose events; after a
/// compaction, or if the history was replaced, it reads the range again and watches from there. Several
/// users share it, until the last one has removed its signal.
final class EtcdMirror: Watching, KeyFollowing {
  typealias Signal = @Sendable (EtcdMirror) -> Void

  private struct State {
    var items: [[UInt8]: KeyValue] = [:]
    /// The earliest moment of the items.
    var moment = EtcdMoment.none
    var failure: EtcdError?
    /// Whether the last look has found changes.
    var isNew = false
    var signals: [Int: Signal]
    var nextSignal = EtcdMirror.firstSignal + 1
  }

  private let container: EtcdContainer
  let range: KeyRange
  private let state: Mutex<State>
  private let follower: KeyFollower

  /// The number of the signal of its maker.
  static let firstSignal = 0

  /// - Parameters:
  ///   - deadline: The end of the first look; nil for that of the container's calls.
  ///   - signal: Gets the mirror when something has changed, on the thread of the watches, so it must
  ///     not block: raise a latch, enqueue work.
  /// - Throws: `EtcdError`: `.unreachable`, and etcd's refusals.
  init(
    _ container: EtcdContainer, range: KeyRange,
    until deadline: ContinuousClock.Instant? = nil,
    _ signal: @escaping Signal
  ) throws(EtcdError) {
    self.container = container
    self.range = range
    state = Mutex(State(signals: [Self.firstSignal: signal]))
    follower = KeyFollower(container, range)
    try follower.begin(for: self, until: deadline ?? container.callDeadline)
  }

  /// Adds a user.
  ///
  /// - Returns: The number of its signal; nil if the last user has ended.
  func add(_ signal: @escaping Signal) -> Int? {
    state.withLock { state in
      guard !state.signals.isEmpty else { return nil }
      defer { state.nextSignal += 1 }
      state.signals[state.nextSignal] = signal
      return state.nextSignal
    }
  }

  func remove(_ number: Int) {
    // Released after the lock.
    let removed = state.withLock { ($0.signals.removeValue(forKey: number), $0.signals.isEmpty) }
    if removed.0 != nil, removed.1 { cancel() }
  }

  private func raise() {
    for signal in state.withLock({ Array($0.signals.values) }) { signal(self) }
  }

  /// The keys in their order, of one revision at the earliest.
  var content: EtcdClient.Content {
    state.withLock { state in
      EtcdClient.Content(
        moment: state.moment,
        items: state.items.values.sorted { $0.key.lexicographicallyPrecedes($1.key) })
    }
  }

  /// One key of it, nil if it does not exist, and the moment of that knowledge.
  func state(of key: [UInt8]) -> SeenState {
    state.withLock { SeenState(item: $0.items[key], seen: $0.moment) }
  }

  func item(_ key: [UInt8]) -> KeyValue? { state.withLock { $0.items[key] } }

  /// Why it has stopped following, as long as it has.
  var failure: EtcdError? { state.withLock { $0.failure } }

  var detection: ChangeDetection { .events }

  func cancel() { follower.cancel() }

  /// Reads the range now, because the watch may be behind: costs a request.
  func catchUp(until deadline: ContinuousClock.Instant) throws(EtcdError) {
    _ = try look(until: deadline)
    // Its other users would miss what the watch reports later: that is no longer new.
    looked(isNewWatch: false)
  }

  func look(until deadline: ContinuousClock.Instant) throws(EtcdError) -> EtcdMoment {
    let found = try container.client.read(range, until: deadline)
    state.withLock { state in
      guard found.moment >= state.moment else { return }
      let items = Dictionary(found.items.map { ($0.key, $0) }) { $1 }
      state.isNew = items != state.items
      (state.moment, state.items) = (found.moment, items)
    }
    return found.moment
  }

  func looked(isNewWatch: Bool) {
    let isNew = state.withLock { state in
      if isNewWatch { state.failure = nil }
      return exchange(&state.isNew, with: false)
    }
    if isNew || isNewWatch { raise() }
  }

  // On the thread of the watches.
  func hear(_ events: [EtcdEvent], of history: Int) {
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
    if isNew { raise() }
  }

  /// Notifies its users once that it has stopped following.
  func failed(_ error: EtcdError) {
    let isFirst = state.withLock { exchange(&$0.failure, with: error) == nil }
    if isFirst { raise() }
  }
}
