/// The senders whose entries a worker may take while it keeps their order: none of a sender while
/// another worker has one of its batches.
///
/// **Before taking** it skips senders of which another worker has a batch. **After taking** it
/// looks again, because two may have taken at once: it keeps its batch undelivered while another
/// has an earlier one of the sender. Batches only move from `pending/` into a worker's directory,
/// and the earliest of a sender is never behind another: so of two that took at once, at least the
/// one with the later batch sees the other.
///
/// That holds where the first batch stored is the first one taken: so each priority of a sender has
/// its own order, and a delayed entry has none.
package struct SenderTurns {
  /// The batches that other workers have taken.
  private let taken: [EntryFile]
  /// The senders that are not next, with the batches that they wait for.
  package private(set) var obstacles: Set<EntryFile> = []
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
  package init(taken: [EntryFile]) { self.taken = taken }

  /// Returns whether a waiting batch may be taken; if not, none of its sender's later ones may be.
  package mutating func mayTake(_ name: EntryFile) -> Bool { pass(name) { _ in true } }

  /// Returns whether a batch that this worker has may be delivered.
  package mutating func mayDeliver(_ name: EntryFile) -> Bool { pass(name) { $0 < name } }

  private mutating func pass(_ name: EntryFile, hinders: (EntryFile) -> Bool) -> Bool {
    // For workers that do not keep the order.
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
