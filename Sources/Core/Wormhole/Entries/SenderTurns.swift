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
package struct SenderTurns {
  /// What the other workers have taken.
  private let taken: [EntryFile]
  /// The senders that are not next, with what they wait for.
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

  /// Returns whether a batch that waits may be taken; if not, nor may later ones of its sender.
  package mutating func mayTake(_ name: EntryFile) -> Bool { pass(name) { _ in true } }

  /// Returns whether a batch that this worker has may be delivered.
  package mutating func mayDeliver(_ name: EntryFile) -> Bool { pass(name) { $0 < name } }

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
