import Entries
import Monitoring
import Synchronization

/// Which senders' entries a worker may take while it keeps their order: none of a sender of which
/// another worker has a batch.
///
/// **Before taking** it passes over senders of which another has any batch. **After taking** it looks
/// again, because two may have taken at once: it keeps its batch undelivered while another has an
/// earlier one of the sender. Batches only move from `pending/` into a worker's directory, and the
/// earliest of a sender is never behind another: so of two that took at once, at least the one with
/// the later batch sees the other.
///
/// That holds where the first that was stored is the first to be taken: so each priority of a sender
/// has an order of its own, and a delayed entry has none.
struct SenderTurns {
  /// What the other workers have taken.
  private let taken: [EntryFile]
  /// The senders that are not next, with what they wait for.
  private(set) var obstacles: Set<EntryFile> = []
  private var blocked: Set<Lane> = []

  private struct Lane: Hashable {
    let sender: String
    let priority: EntryPriority

    init?(_ name: EntryFile) {
      guard name.due == nil else { return nil }
      sender = name.sender
      priority = name.priority
    }
  }

  /// - Parameter taken: the batches of all other workers, of which some may have ended just now.
  init(taken: [EntryFile]) { self.taken = taken }

  /// Returns whether a batch that waits may be taken; if not, nor may later ones of its sender.
  mutating func mayTake(_ name: EntryFile) -> Bool { pass(name) { _ in true } }

  /// Returns whether a batch that this worker has may be delivered.
  mutating func mayDeliver(_ name: EntryFile) -> Bool { pass(name) { $0 < name } }

  private mutating func pass(_ name: EntryFile, hinders: (EntryFile) -> Bool) -> Bool {
    // As it is without workers that keep the order.
    if taken.isEmpty, blocked.isEmpty { return true }
    guard let lane = Lane(name) else { return true }
    let found = taken.filter { Lane($0) == lane && hinders($0) }
    guard found.isEmpty, !blocked.contains(lane) else {
      blocked.insert(lane)
      obstacles.formUnion(found)
      return false
    }
    return true
  }
}

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
