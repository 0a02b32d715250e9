/// The result of checking a history.
package enum Verdict: Sendable {
  /// Some order explains every answer.
  case linearizable
  /// No order does.
  case violation(Violation)
  /// No answer within the given number of steps.
  case undecided(limit: Int)
}

/// Returns whether every key behaved as one register on which each operation took effect at one
/// instant between its call and its return (Herlihy & Wing, “Linearizability”, 1990).
///
/// Registers are independent, so each key is checked alone. An operation that returned at the very
/// nanosecond at which another was called counts as concurrent with it.
///
/// - Parameters:
///   - operations: The operations that all processes recorded, in any order.
///   - initial: The initial contents of registers; the others are empty.
///   - limit: The largest number of steps of the search for each key; each takes about a
///     microsecond and at most 100 bytes. Histories in which every written value is new need little
///     more than one step per operation.
/// - Returns: The violation of the first key, in the order of keys, that has one.
package func checkLinearizability(
  of operations: [HistoryOperation], initial: [String: HistoryValue] = [:], limit: Int = 5_000_000
) -> Verdict {
  var histories: [String: [Int]] = [:]
  for (index, operation) in operations.enumerated() {
    histories[operation.key, default: []].append(index)
  }
  var isUndecided = false
  for (key, indices) in histories.sorted(by: { $0.key < $1.key }) {
    let steps = settleUnknown(
      in: indices.compactMap { Step(operations[$0], index: $0) }, initial: initial[key])
    var search = Search(steps, initial: .some(initial[key]))
    var work = limit
    switch search.run(work: &work) {
    case .found: continue
    case .exhausted: isUndecided = true
    case .impossible(let returns):
      var finder = ViolationFinder(steps, initial: initial[key], limit: limit)
      let window = finder.smallestWindow(passable: returns)
      return .violation(Violation(key: key, window: window, among: indices, of: operations))
    }
  }
  return isUndecided ? .undecided(limit: limit) : .linearizable
}
