import Synchronization
import Wormhole
import WormholeSystem

/// The mirror of a key for one of its observers. All observers of a key in this process share one watch,
/// so a change comes once, however many there are.
final class MirroredKey: Watching {
  private let shared: SharedMirror
  private let number: Int
  private let key: [UInt8]

  /// Begins to follow a key, whose state is then as new as this call.
  ///
  /// - Parameter signal: Called when something has changed, on the thread of the watches, so it must not
  ///   block.
  /// - Throws: `EtcdError`: `.unreachable`, and etcd's refusals.
  /// - Complexity: One request.
  init(
    _ etcd: EtcdContainer, _ key: [UInt8], _ signal: @escaping @Sendable () -> Void
  ) throws(EtcdError) {
    self.key = key
    let known = etcd.shared.mirrors.withLock { $0[key]?.object }
    if let known, known.mirror.failure == nil, let number = known.signals.add(signal) {
      (shared, self.number) = (known, number)
      try known.mirror.catchUp(until: etcd.soon)
    } else {
      // Each of two threads that begin at once has a watch; later observers share the last one.
      let new = try SharedMirror(etcd, key, signal)
      (shared, number) = (new, SharedMirror.Signals.first)
      etcd.shared.mirrors.withLock { mirrors in
        mirrors = mirrors.filter { $0.value.object != nil }
        mirrors[key] = Weak(object: new)
      }
    }
  }

  deinit { cancel() }

  func cancel() { if shared.signals.remove(number) { shared.mirror.cancel() } }

  var detection: ChangeDetection { shared.mirror.detection }

  /// Why it has stopped following, as long as it has.
  var failure: EtcdError? { shared.mirror.failure }

  /// The key, nil if it does not exist, and the moment of that knowledge.
  var state: (item: KeyValue?, seen: EtcdMoment) { shared.mirror.state(of: key) }

  /// Reads the key now, because the watch may be behind: costs a request.
  func catchUp(until deadline: ContinuousClock.Instant) throws(EtcdError) {
    try shared.mirror.catchUp(until: deadline)
  }
}

/// The mirror of a key, until its last observer has ended.
final class SharedMirror: Sendable {
  fileprivate let mirror: EtcdMirror
  fileprivate let signals: Signals

  fileprivate init(
    _ etcd: EtcdContainer, _ key: [UInt8], _ first: @escaping @Sendable () -> Void
  ) throws(EtcdError) {
    let signals = Signals(first)
    self.signals = signals
    mirror = try EtcdMirror(etcd, range: .key(key)) { _ in signals.raise() }
  }

  /// The signals of the observers.
  fileprivate final class Signals: Sendable {
    static let first = 0
    private let all: Mutex<(next: Int, signals: [Int: @Sendable () -> Void])>

    init(_ signal: @escaping @Sendable () -> Void) {
      all = Mutex((Self.first + 1, [Self.first: signal]))
    }

    /// - Returns: The number of the signal; nil if the last one was removed.
    func add(_ signal: @escaping @Sendable () -> Void) -> Int? {
      all.withLock { all in
        guard !all.signals.isEmpty else { return nil }
        all.signals[all.next] = signal
        all.next += 1
        return all.next - 1
      }
    }

    /// - Returns: Whether it was the last.
    func remove(_ number: Int) -> Bool {
      // Released after the lock.
      let removed = all.withLock { ($0.signals.removeValue(forKey: number), $0.signals.isEmpty) }
      return removed.0 != nil && removed.1
    }

    func raise() {
      let signals = all.withLock { Array($0.signals.values) }
      for signal in signals { signal() }
    }
  }
}
