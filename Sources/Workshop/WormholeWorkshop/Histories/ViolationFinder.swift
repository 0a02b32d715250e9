/// The search for the shortest stretch of an unexplained history in which a contradiction is
/// visible.
///
/// A stretch is contradictory if no possible value of the register at its start leads to an order
/// of its operations. Operations that begin before its start may have taken effect before it, and
/// those that end after its end may take effect later, so these operations may be left out.
/// Therefore a stretch within an explicable one is explicable, and both ends can be found by
/// doubling and halving.
struct ViolationFinder {
  private let steps: [Step]
  private let initial: HistoryValue?
  /// The budget of all trials together; once it is used up, windows stay as long as they are.
  private var budget: Int
  /// The earliest time at which each value can have been in the register.
  private var earliest: [HistoryValue?: UInt64] = [:]

  init(_ steps: [Step], initial: HistoryValue?, limit: Int) {
    self.steps = steps
    self.initial = initial
    budget = limit
    for step in steps {
      guard let value = step.produced else { continue }
      earliest[value] = min(earliest[value] ?? .max, step.invocation)
    }
    earliest[initial] = 0
  }

  /// Returns the steps of the window; `passable` operations, in the order of returns, have an
  /// explanation.
  mutating func smallestWindow(passable: Int) -> [Step] {
    let ends = steps.compactMap(\.response).sorted()
    let last = Self.firstContradiction(in: passable..<ends.count) {
      contradicts(from: nil, to: ends[$0])
    }
    let end = ends[last]
    let starts: [UInt64?] = steps.map(\.invocation).filter { $0 <= end }.sorted(by: >) + [nil]
    let first = Self.firstContradiction(in: starts.indices) {
      contradicts(from: starts[$0], to: end)
    }
    return withoutBystanders(stretch(from: starts[first], to: end), from: starts[first])
  }

  /// Returns the first index at which `isContradiction` holds; from there on it stays true, and it
  /// is true at the last index.
  private static func firstContradiction(
    in range: Range<Int>, where isContradiction: (Int) -> Bool
  ) -> Int {
    var low = range.lowerBound
    var high = low
    var reach = 1
    while high < range.upperBound - 1, !isContradiction(high) {
      low = high + 1
      high = min(high + reach, range.upperBound - 1)
      reach *= 2
    }
    while low < high {
      let middle = (low + high) / 2
      if isContradiction(middle) { high = middle } else { low = middle + 1 }
    }
    return high
  }

  private mutating func contradicts(from start: UInt64?, to end: UInt64) -> Bool {
    isContradictory(stretch(from: start, to: end), from: start)
  }

  private func stretch(from start: UInt64?, to end: UInt64) -> [Step] {
    steps.compactMap { step in
      if step.invocation > end { return nil }
      if let start, let response = step.response, response < start { return nil }
      var step = step
      let reachesOver = start.map { step.invocation < $0 } ?? false
      if reachesOver || (step.response ?? 0) > end {
        if step.produced == nil { return nil }
        step.response = nil
      }
      return step
    }
  }

  private mutating func isContradictory(_ stretch: [Step], from start: UInt64?) -> Bool {
    guard let start else { return isImpossible(stretch, initial: .some(initial)) }
    // The value of which no step knows, and each one that may have been there.
    var values: Set<HistoryValue??> = [nil]
    for case let value? in stretch.map(\.observed)
    where value == initial || (earliest[value] ?? .max) < start {
      values.insert(value)
    }
    for value in values where !isImpossible(stretch, initial: value) { return false }
    return true
  }

  private mutating func isImpossible(_ stretch: [Step], initial: HistoryValue??) -> Bool {
    // Preparing a search costs about as much as trying each of its steps.
    budget -= stretch.count
    guard budget > 0 else { return false }
    var search = Search(stretch, initial: initial)
    if case .impossible = search.run(work: &budget) { return true }
    return false
  }

  /// Drops operations that changed nothing and without which the contradiction remains.
  private mutating func withoutBystanders(_ stretch: [Step], from start: UInt64?) -> [Step] {
    guard stretch.count <= 100 else { return stretch }
    var kept = stretch
    for step in stretch where step.produced == nil {
      let fewer = kept.filter { $0.index != step.index }
      if isContradictory(fewer, from: start) { kept = fewer }
    }
    return kept
  }
}
