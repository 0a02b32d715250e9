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
///   - limit: The largest number of steps of the search for each key; each takes about two
///     microseconds and about 100 bytes. Histories in which every written value is new need little
///     more than one step per operation.
/// - Returns: The violation of the first key, in the order of keys, that has one.
package func checkLinearizability(
  of operations: [HistoryOperation], initial: [String: HistoryValue] = [:], limit: Int = 5_000_000
) -> Verdict {
  let histories = Dictionary(grouping: operations, by: \.key)
  var isUndecided = false
  for (key, history) in histories.sorted(by: { $0.key < $1.key }) {
    let steps = settleUnknown(
      in: history.enumerated().compactMap { Step($1, index: $0) }, initial: initial[key])
    var search = Search(steps, initial: .some(initial[key]))
    var work = limit
    switch search.run(work: &work) {
    case .found: continue
    case .exhausted: isUndecided = true
    case .impossible(let returns):
      var finder = ViolationFinder(steps, initial: initial[key], limit: limit)
      let window = finder.smallestWindow(passable: returns)
      return .violation(Violation(key: key, window: window, of: history))
    }
  }
  return isUndecided ? .undecided(limit: limit) : .linearizable
}

/// Two reads of a key by one reader, of which the later found the older value.
package struct BackwardRead: Hashable, Sendable, CustomStringConvertible {
  package let earlier: HistoryOperation
  package let later: HistoryOperation

  package var description: String {
    "process \(later.process) read key “\(later.key)” backwards: \(earlier.sentence), then \(later.sentence)"
  }
}

/// Returns the first read, in its reader's order, that found an older value than the reader had
/// found before.
///
/// The check is cheap (one pass over the sorted reads), and also works for histories that are too
/// long for the linearizability check. Reading nothing after something counts as backwards unless
/// the key is removed.
///
/// - Parameter operations: Histories in which the values of each key only ever grow.
package func findBackwardRead(in operations: [HistoryOperation]) -> BackwardRead? {
  struct Reader: Hashable {
    let process: Int
    let key: String
  }
  let removed = Set(operations.filter(\.canRemove).map(\.key))
  var newest: [Reader: (value: HistoryValue, operation: HistoryOperation)] = [:]
  for operation in operations.sorted(by: { $0.invocation < $1.invocation }) {
    guard operation.call == .read, case .completed(.value(let value), _) = operation.outcome
    else { continue }
    let reader = Reader(process: operation.process, key: operation.key)
    if let (last, earlier) = newest[reader],
      value.map({ $0 < last }) ?? !removed.contains(operation.key)
    {
      return BackwardRead(earlier: earlier, later: operation)
    }
    if let value { newest[reader] = (value, operation) }
  }
  return nil
}

/// Returns the first operation, by its call, that found a value that no operation of the history
/// can have written.
///
/// The check is cheap (two passes) and ignores time. `initial` holds the initial contents of
/// registers; the others are empty.
package func findUnwrittenRead(
  in operations: [HistoryOperation], initial: [String: HistoryValue] = [:]
) -> HistoryOperation? {
  var written: [String: Set<HistoryValue?>] = [:]
  for operation in operations {
    guard let value = Step(operation, index: 0)?.produced else { continue }
    written[operation.key, default: []].insert(value)
  }
  return operations.sorted { $0.invocation < $1.invocation }.first { operation in
    guard operation.outcome != .unknown, let found = Step(operation, index: 0)?.observed,
      found != initial[operation.key]
    else { return false }
    return !(written[operation.key]?.contains(found) ?? false)
  }
}

extension HistoryOperation {
  fileprivate var canRemove: Bool {
    switch call {
    case .write(nil), .update(_, to: nil): true
    default: false
    }
  }
}
