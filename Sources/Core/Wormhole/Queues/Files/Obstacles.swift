import Synchronization
package import WormholeSystem

/// Notifies callers that wait for the end of entries which batches to look at again. A caller first
/// registers and then looks, so no end is missed.
package protocol QueueEnds: Sendable {
  /// Adds a latch that is raised whenever something happens to a batch from now on.
  func add(_ latch: WakeLatch, _ batch: EntryFile) throws
  func remove(_ latch: WakeLatch, _ batch: EntryFile)
  /// For tests: how many watches there are.
  var watches: Int { get }
}

/// A worker's wait for batches that others have taken. Used by one thread at a time.
package final class Obstacles: Sendable {
  private let ends: any QueueEnds
  private let latch: WakeLatch
  private let known = Mutex<Set<EntryFile>>([])

  package init(_ ends: any QueueEnds, _ latch: WakeLatch) {
    self.ends = ends
    self.latch = latch
  }

  deinit { for name in known.withLock({ $0 }) { ends.remove(latch, name) } }

  /// From now on the latch is raised when anything happens to these batches, and to no others.
  ///
  /// - Returns: whether one is new: the caller then looks again, because it may have ended before.
  package func watch(_ names: Set<EntryFile>) throws -> Bool {
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
