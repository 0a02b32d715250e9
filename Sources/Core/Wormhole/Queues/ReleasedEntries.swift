import Synchronization

/// Entries given back to a consumer, until they are due.
final class ReleasedEntries: Sendable {
  struct Entry: Sendable {
    let batch: TakenBatch
    let index: Int
    let due: ContinuousClock.Instant
  }

  private let entries = Mutex<[Entry]>([])
  private let signal: @Sendable () -> Void

  /// - Parameter signal: called when an entry is given back, possibly while the consumer waits.
  init(signal: @escaping @Sendable () -> Void) { self.signal = signal }

  /// Called by the thread that is looking for the next entry.
  func add(_ entry: Entry) { entries.withLock { $0.append(entry) } }

  func giveBack(_ entry: Entry) {
    add(entry)
    signal()
  }

  /// Takes the entry that has been due longest; nil if none is due.
  func takeDue() -> Entry? {
    let now = ContinuousClock.now
    return entries.withLock { entries in
      let due = entries.indices.filter { entries[$0].due <= now }
      guard let first = due.min(by: { entries[$0].due < entries[$1].due }) else { return nil }
      return entries.remove(at: first)
    }
  }

  /// When the first entry is due; nil if none was given back.
  var due: ContinuousClock.Instant? { entries.withLock { $0.map(\.due).min() } }
}
