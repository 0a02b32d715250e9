import WormholeTerminals

/// Operations on one register that no order explains.
package struct Violation: Sendable, CustomStringConvertible {
  package let key: String
  /// The shortest stretch that contradicts itself whatever the register held before, in the order
  /// of calls.
  package let operations: [HistoryOperation]
  /// The end of the stretch, at which the contradiction first becomes visible.
  package let end: UInt64
  /// The operations that wrote the values found but not written in the stretch: the last eight, in
  /// the order of calls.
  package let origins: ArraySlice<HistoryOperation>

  /// - Parameter history: All operations on the register, to whose indices the steps refer.
  init(key: String, window: [Step], of history: [HistoryOperation]) {
    self.key = key
    var inside = Set(window.map(\.index))
    for step in window where step.isRequired && history[step.index].outcome == .unknown {
      if let reader = Self.firstReader(of: step, in: history) { inside.insert(reader) }
    }
    operations = inside.map { history[$0] }.sorted(by: Self.isEarlier)

    end = window.compactMap(\.response).max() ?? 0

    var foreign = Set(window.compactMap(\.observed))
    for case let value? in window.map(\.produced) { foreign.remove(value) }
    let last = operations.last?.invocation ?? 0
    let origins = history.indices.filter { index in
      guard !inside.contains(index), history[index].invocation <= last,
        let value = Step(history[index], index: index)?.produced
      else { return false }
      return foreign.contains(value)
    }
    self.origins = origins.map { history[$0] }.sorted(by: Self.isEarlier).suffix(8)
  }

  /// Returns the first operation that showed that an operation of unknown outcome took effect.
  private static func firstReader(of step: Step, in history: [HistoryOperation]) -> Int? {
    history.indices.filter { index in
      history[index].response != nil
        && Step(history[index], index: index)?.observed == step.produced
    }.min { (history[$0].response ?? .max) < (history[$1].response ?? .max) }
  }

  private static func isEarlier(_ left: HistoryOperation, _ right: HistoryOperation) -> Bool {
    (left.invocation, left.process) < (right.invocation, right.process)
  }

  /// One line per operation, its time as a bar; for long stretches the last forty operations.
  package var description: String {
    let shown = operations.suffix(40)
    let first = shown.first?.invocation ?? 0
    var text = "key “\(key)”: no order of these operations explains what they returned\n"
    text += "  process    called µs  returned µs\n"
    if !origins.isEmpty {
      text += origins.map { row($0, since: first) + "  (elsewhere)\n" }.joined()
    }
    if shown.count < operations.count {
      text += "  … \(operations.count - shown.count) earlier operations …\n"
    }
    for operation in shown {
      text += row(operation, since: first)
      text += "  |" + bar(operation, from: first, to: max(first, end)) + "|\n"
    }
    return text
  }

  private func row(_ operation: HistoryOperation, since start: UInt64) -> String {
    func microseconds(_ time: UInt64) -> String {
      fixed(Double(Int64(bitPattern: time &- start)) / 1_000, 3)
    }
    let cells = [
      String(operation.process).padded(to: 7, atRight: true),
      microseconds(operation.invocation).padded(to: 12, atRight: true),
      (operation.response.map(microseconds) ?? "?").padded(to: 12, atRight: true),
    ]
    return "  " + cells.joined(separator: " ") + "  " + operation.sentence.padded(to: 34)
  }

  /// Returns forty columns of time; `>` stands for a later return or none.
  private func bar(_ operation: HistoryOperation, from start: UInt64, to end: UInt64) -> String {
    let width = 40
    func column(_ time: UInt64) -> Int {
      let share = Double(min(max(time, start), end) - start) / Double(max(end - start, 1))
      return Int(share * Double(width - 1))
    }
    let left = column(operation.invocation)
    let right = operation.response.map(column) ?? width - 1
    let isCut = (operation.response ?? .max) > end
    return String(repeating: " ", count: left)
      + String(repeating: "=", count: right - left) + (isCut ? ">" : "=")
      + String(repeating: " ", count: width - 1 - right)
  }
}

extension HistoryOperation {
  /// The call and its result, in words.
  package var sentence: String {
    let asked =
      switch call {
      case .read: "read"
      case .write(nil): "remove"
      case .write(let value?): "write \(value)"
      case .compareAndSwap(let expected, let new): "swap \(Self.word(expected)) for \(new)"
      case .update(let from, let to): "update \(Self.word(from)) to \(Self.word(to))"
      }
    return switch outcome {
    case .unknown: asked + " → unknown"
    case .completed(.value(let value), _): asked + " → \(Self.word(value))"
    case .completed(.swapped(let swapped), _): asked + (swapped ? " → swapped" : " → not swapped")
    case .completed(.done, _): asked
    }
  }

  private static func word(_ value: HistoryValue?) -> String { value.map(String.init) ?? "-" }
}

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
