import Synchronization
import Wormhole
import WormholeSystem

/// The mirror of a key for one of its observers. All observers of a key in this process share one
/// watch, so a change comes once, however many there are.
final class MirroredKey: Cancelling {
  let mirror: EtcdMirror
  private let number: Int
  private let key: [UInt8]

  /// Begins to follow a key; its state is then as new as this call.
  ///
  /// - Parameter signal: Called when something has changed, on the watches' thread: must not block.
  /// - Throws: `EtcdError`: `.unreachable`, and etcd's refusals.
  /// - Complexity: One request.
  init(
    _ etcd: EtcdContainer, _ key: [UInt8], _ signal: @escaping @Sendable () -> Void
  ) throws(EtcdError) {
    self.key = key
    let known = etcd.shared.mirrors.withLock { $0[key]?.object }
    if let known, known.failure == nil, let number = known.add({ _ in signal() }) {
      (mirror, self.number) = (known, number)
      try known.catchUp(until: etcd.callDeadline)
    } else {
      // Each of two threads that begin at once has a watch; later observers share the last one.
      let new = try EtcdMirror(etcd, range: .key(key)) { _ in signal() }
      (mirror, number) = (new, EtcdMirror.firstSignal)
      etcd.shared.mirrors.withLock { mirrors in
        mirrors = mirrors.filter { $0.value.object != nil }
        mirrors[key] = Weak(object: new)
      }
    }
  }

  deinit { cancel() }

  func cancel() { mirror.remove(number) }

  /// The key, nil if it does not exist, and the moment of that knowledge.
  var state: SeenState { mirror.state(of: key) }
}
