import Entries
import Monitoring
import Synchronization

/// A worker's wait for what others have taken. Used by one thread at a time.
final class Obstacles: Sendable {
  private let ends: any QueueEnds
  private let latch: WakeLatch
  private let known = Mutex<Set<EntryFile>>([])

  init(of queue: Queue, _ latch: WakeLatch) {
    ends = queue.store.endWatch()
    self.latch = latch
  }

  deinit { for name in known.withLock({ $0 }) { ends.remove(latch, name) } }

  /// Lets the latch be raised when anything happens to these, and to no others any more.
  ///
  /// - Returns: whether one is new: the caller then looks again, because it may have ended before.
  func watch(_ names: Set<EntryFile>) throws -> Bool {
    let before = known.withLock { $0 }
    for name in before.subtracting(names) {
      ends.remove(latch, name)
      known.withLock { _ = $0.remove(name) }
    }
    let new = names.subtracting(before)
    for name in new {
      try ends.add(latch, name)
      known.withLock { _ = $0.insert(name) }
    }
    return !new.isEmpty
  }
}
