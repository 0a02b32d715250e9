import Synchronization
import WormholeSystem

/// Items that other threads have reported and the main thread has not handled yet.
///
/// Each use bounds the memory that a slow reader of our output can cost, by the rule with which a
/// new item joins the waiting items.
final class Backlog<Item: Sendable>: Sendable {
  private let items = Mutex<[Item]>([])
  private let latch = WakeLatch()
  private let join: @Sendable (inout [Item], Item) -> Void

  /// - Parameter join: adds a new item to the waiting ones; by default at their end.
  init(joining join: @escaping @Sendable (inout [Item], Item) -> Void = { $0.append($1) }) {
    self.join = join
  }

  func add(_ item: Item) {
    items.withLock { join(&$0, item) }
    latch.raise()
  }

  /// Waits for the next item, in the order of arrival; nil if none has come by the deadline.
  func next(until deadline: ContinuousClock.Instant) -> Item? {
    while true {
      let first = items.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      if let first { return first }
      if ContinuousClock.now >= deadline { return nil }
      latch.block(until: deadline)
    }
  }

  /// Waits like `next`, and lets a lone item wait a moment: a shell that writes a file changes it
  /// twice, and the first change empties it.
  func settled(until deadline: ContinuousClock.Instant) -> Item? {
    while items.withLock({ $0.isEmpty }), ContinuousClock.now < deadline {
      latch.block(until: deadline)
    }
    if items.withLock({ $0.count == 1 }) { pauseThread(.milliseconds(50)) }
    return next(until: .now)
  }

  /// Keeps only the latest item of each key, at the end: a slow reader catches up with the last
  /// message of each identifier.
  static func latest(of key: @escaping @Sendable (Item) -> some Equatable) -> Backlog {
    Backlog { items, item in
      items.removeAll { key($0) == key(item) }
      items.append(item)
    }
  }
}

extension ParsedArguments {
  /// Handles one item after another: until `--count` are handled, the deadline has passed, or the
  /// process gets a signal to end.
  ///
  /// - Parameters:
  ///   - limit: how many, `.max` for any number; by default `--count`.
  ///   - first: an item that was already found.
  ///   - next: waits for the next item; nil when the deadline has passed and no item waits.
  ///   - interruption: nil if a signal simply ends the process.
  ///   - none: the status when no item is left; `.done` for that of the handled ones.
  ///   - showsSignal: Whether the status shows which signal came before all items were handled.
  ///   - beforeLast: called before the last item is handled; again if that did not count.
  ///   - handle: returns the item's status; nil for an item that does not count.
  /// - Throws: the last status that was not `done`; `.no` or that of a signal that came before it had
  ///   handled `--count` items.
  func handleEach<Item: Sendable>(
    of next: @escaping @Sendable (ContinuousClock.Instant) throws -> Item?,
    after first: Item? = nil, until deadline: ContinuousClock.Instant,
    _ interruption: Interruption? = nil, limit: Int? = nil, none: ExitStatus = .deadline,
    showsSignal: Bool = false, beforeLast: () -> Void = {},
    handle: (Item) throws -> ExitStatus?
  ) throws {
    var status = ExitStatus.done
    let limit = limit ?? count("count") ?? .max
    var remaining = limit
    var first = first
    while remaining > 0 {
      let found: Item?? =
        if let item = first.take() {
          item
        } else if let interruption { try interruption.wait { try next(deadline) } } else {
          try next(deadline)
        }
      guard let found else {
        let early = showsSignal ? interruption?.endStatus : nil
        return try (limit == .max ? status : early ?? .no).end()
      }
      guard let item = found else { return try (none == .done ? status : none).end() }
      if remaining == 1 { beforeLast() }
      guard let ended = try handle(item) else { continue }
      if ended != .done { status = ended }
      remaining -= 1
    }
    try status.end()
  }
}
