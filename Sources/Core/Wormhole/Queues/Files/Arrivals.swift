import Synchronization
package import WormholeSystem

/// Which kinds of entries have arrived in `pending/` since the last listing, by the kernel's events:
/// only what goes before known entries is worth another listing.
package final class Arrivals: Sendable {
  private static let delayed = 1 << EntryPriority.allCases.count
  private let kinds = Atomic(0)

  package init() {}

  /// Called on the monitor's thread.
  package func note(_ news: WatchNews) {
    var kinds = news.isEverything || !news.own.isEmpty ? Self.delayed : 0
    for (name, events) in news.names where !events.isDisjoint(with: [.movedTo, .created]) {
      kinds |=
        EntryFile.isDelayed(name.bytes)
        ? Self.delayed : 1 << EntryPriority(firstByte: name.bytes.first).rawValue
    }
    self.kinds.bitwiseOr(kinds, ordering: .sequentiallyConsistent)
  }

  package func note(_ name: EntryFile) {
    let kind = name.due != nil ? Self.delayed : 1 << name.priority.rawValue
    kinds.bitwiseOr(kind, ordering: .sequentiallyConsistent)
  }

  package func noteEverything() { kinds.store(.max, ordering: .sequentiallyConsistent) }

  package func clear() { kinds.store(0, ordering: .sequentiallyConsistent) }

  /// Returns whether any may go before an entry; a delayed one may be due before it is taken.
  package func mayPrecede(_ name: EntryFile) -> Bool {
    let higher = EntryPriority.allCases.filter { $0 < name.priority }
    let wanted = higher.reduce(Self.delayed) { $0 | 1 << $1.rawValue }
    return kinds.load(ordering: .sequentiallyConsistent) & wanted != 0
  }
}
