import AppGroup
import GroupDefaults
import PropertyLists
import Synchronization

/// Changes of defaults that have been heard of and not been printed yet.
///
/// Those of one key become one, from the value that was printed last to the latest: a slow reader
/// of our output costs no more memory than the defaults themselves.
final class DefaultsBacklog: Sendable {
  struct Change: Sendable {
    let key: String
    let old: PropertyListValue?
    var new: PropertyListValue?
  }

  private let pending = Mutex<[Change]>([])
  private let latch = WakeLatch()

  func add(_ change: DefaultsChange) {
    pending.withLock { pending in
      guard let index = pending.firstIndex(where: { $0.key == change.key }) else {
        pending.append(Change(key: change.key, old: change.oldValue, new: change.newValue))
        return
      }
      pending[index].new = change.newValue
      // Back to what was printed last: nothing to print.
      if pending[index].old == pending[index].new { pending.remove(at: index) }
    }
    latch.raise()
  }

  /// Waits for the next change, in the order in which keys changed first.
  ///
  /// - Returns: nil when the deadline has passed and there is none.
  func next(until deadline: ContinuousClock.Instant?) -> Change? {
    while true {
      let first = pending.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      if let first { return first }
      let now = ContinuousClock.now
      if let deadline, now >= deadline { return nil }
      latch.block(until: deadline ?? now + .seconds(3_600))
    }
  }
}
