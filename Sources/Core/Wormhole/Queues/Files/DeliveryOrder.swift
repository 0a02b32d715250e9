import Synchronization
package import WormholeSystem

/// The waiting entries in `pending/` for one consumer, as of its last listing.
///
/// The next listing comes when all of them are taken, so the cost of an entry does not grow with
/// the number of waiting entries; or earlier, when an entry arrives that goes before the rest.
///
/// **Delayed entries** stay in `pending/` until they are due, so their sender can still cancel or
/// supersede them. A consumer remembers them, and waits for the first with a timer. An entry is due at
/// its time by the system's clock; or, if that was set back, when its delay has passed since this
/// consumer saw it first.
package struct WaitingEntries: Sendable {
  private let clock: @Sendable () -> UInt64
  /// The entries that may be taken, with the next at the end.
  private var ready: [EntryFile] = []
  /// The entries that are not due yet, with the next at the end.
  private var delayed: [(name: EntryFile, due: ContinuousClock.Instant)] = []
  /// Before this, arrivals cause no listing: such listings take at most an eighth of the time,
  /// however many entries wait.
  private var pause = ContinuousClock.now
  /// Up to this number, a listing takes about as long as one delivery, so there is no such pause.
  private static let few = 64
  private let arrivals: Arrivals

  /// - Parameter clock: The queue's clock, by which a delayed entry is due.
  package init(clock: @escaping @Sendable () -> UInt64, _ arrivals: Arrivals) {
    self.clock = clock
    self.arrivals = arrivals
  }

  /// When an entry may become ready without an event; nil if never.
  package var due: ContinuousClock.Instant? { delayed.last?.due }

  /// Returns the next entry to take; nil if there is none.
  ///
  /// - Parameter listing: lists the waiting entries in the order of delivery.
  package mutating func next(listing: () throws -> [EntryFile]) throws -> EntryFile? {
    moveDue()
    let isOvertaken = !ready.isEmpty && arrivals.mayPrecede && pause <= .now
    if ready.isEmpty || isOvertaken { try list(listing) }
    return ready.last
  }

  /// Forgets an entry that was taken, or is gone.
  package mutating func remove(_ name: EntryFile) {
    if let index = ready.lastIndex(of: name) { ready.remove(at: index) }
  }

  private mutating func list(_ listing: () throws -> [EntryFile]) throws {
    let begun = ContinuousClock.now
    // Before the listing: later arrivals are recorded again.
    arrivals.clear()
    let all = try listing()
    let (now, moment) = (clock(), ContinuousClock.now)
    // A listing may show a file twice if it is exchanged meanwhile.
    let known = Dictionary(delayed.map { ($0.name, $0.due) }, uniquingKeysWith: min)
    delayed = []
    ready.removeAll(keepingCapacity: true)
    for name in all.reversed() {
      if let due = Self.due(name, at: moment, now) {
        let due = min(due, known[name] ?? due)
        if due > moment {
          delayed.append((name, due))
          continue
        }
      }
      ready.append(name)
    }
    delayed = delayed.ordered { $0.due > $1.due }
    pause = all.count > Self.few ? moment + (moment - begun) * 8 : moment
  }

  private static func due(
    _ name: EntryFile, at moment: ContinuousClock.Instant, _ now: UInt64
  ) -> ContinuousClock.Instant? {
    guard let due = name.due else { return nil }
    // A clock that was set back must not prolong the delay.
    let pause = due - min(due, max(now, name.order))
    return moment + .nanoseconds(Int64(clamping: pause))
  }

  private mutating func moveDue() {
    while let (name, due) = delayed.last, due <= .now {
      delayed.removeLast()
      // Between those that it precedes, and those that precede it, by bisection.
      var (low, high) = (0, ready.count)
      while low < high {
        let middle = (low + high) / 2
        if name.precedes(ready[middle]) { low = middle + 1 } else { high = middle }
      }
      ready.insert(name, at: low)
    }
  }
}

/// Whether, by the kernel's events, an entry that may go before known ones has arrived in
/// `pending/` since the last listing: only that is worth another listing.
package final class Arrivals: Sendable {
  private let isAhead = Atomic(false)

  package init() {}

  /// Called on the monitor's thread.
  package func note(_ news: WatchNews) {
    let isAhead =
      news.isEverything || !news.own.isEmpty
      || news.names.contains { name, events in
        !events.isDisjoint(with: [.movedTo, .created]) && EntryFile.mayGoAhead(name.bytes)
      }
    if isAhead { noteEverything() }
  }

  package func note(_ name: EntryFile) {
    if name.due != nil || name.part != nil { noteEverything() }
  }

  package func noteEverything() { isAhead.store(true, ordering: .sequentiallyConsistent) }

  package func clear() { isAhead.store(false, ordering: .sequentiallyConsistent) }

  /// Whether any may go before a known entry; a delayed one may be due before that is taken.
  package var mayPrecede: Bool { isAhead.load(ordering: .sequentiallyConsistent) }
}
