/// Elements that are due at moments; the one that is due first is found at once.
package struct DueHeap<Element: Sendable>: Sendable {
  /// When the first one is due; nil if there is none. Stored, because each take of a queue asks.
  package private(set) var due: ContinuousClock.Instant?
  /// Each is due no later than the two below it, at twice its place plus 1 and 2.
  private var entries: [(due: ContinuousClock.Instant, element: Element)] = []

  package init() {}

  /// - Returns: Whether it is the first.
  /// - Complexity: the logarithm of the number of elements.
  @discardableResult
  package mutating func insert(_ element: Element, due: ContinuousClock.Instant) -> Bool {
    entries.append((due, element))
    var place = entries.count - 1
    while place > 0, due < entries[(place - 1) / 2].due {
      entries.swapAt(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
    if place == 0 { self.due = due }
    return place == 0
  }

  /// Takes the first element; nil if it is not due yet, or there is none.
  ///
  /// - Complexity: as `insert`.
  package mutating func takeFirst(dueAt now: ContinuousClock.Instant) -> Element? {
    guard let due, due <= now else { return nil }
    entries.swapAt(0, entries.count - 1)
    let first = entries.removeLast().element
    defer { self.due = entries.first?.due }
    var place = 0
    while true {
      let below = (2 * place + 1...2 * place + 2).prefix { $0 < entries.count }
      guard let soonest = below.min(by: { entries[$0].due < entries[$1].due }),
        entries[soonest].due < entries[place].due
      else { return first }
      entries.swapAt(place, soonest)
      place = soonest
    }
  }
}
