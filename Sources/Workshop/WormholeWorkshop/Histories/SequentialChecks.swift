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

/// Returns the first operation, by its call, that found a value which no operation of the history
/// can have written.
///
/// The check is cheap (two passes) and ignores time. `initial` holds the initial contents of
/// registers; the others are empty.
package func findUnwrittenRead(
  in operations: [HistoryOperation], initial: [String: HistoryValue] = [:]
)
  -> HistoryOperation?
{
  var written: [String: Set<HistoryValue?>] = initial.mapValues { [$0] }
  var unknownIncrements: [String: UInt64] = [:]
  for operation in operations {
    // The register of an unmentioned key starts with nothing.
    if initial[operation.key] == nil { written[operation.key, default: []].insert(nil) }
    guard let step = Step(operation, index: 0) else { continue }
    if let value = step.produced { written[operation.key, default: []].insert(value) }
    if step.effect == .increment { unknownIncrements[operation.key, default: 0] += 1 }
  }
  return operations.sorted { $0.invocation < $1.invocation }.first { operation in
    guard operation.outcome != .unknown, let step = Step(operation, index: 0),
      let found = step.observed
    else { return false }
    let values = written[operation.key] ?? []
    if values.contains(found) { return false }
    guard let found else { return true }
    // An increment of unknown effect may have led here from any of the values just below.
    let steps = min(unknownIncrements[operation.key] ?? 0, found)
    return !(0...steps).contains { below in
      below > 0 && (values.contains(found - below) || (found == below && values.contains(nil)))
    }
  }
}

extension HistoryOperation {
  fileprivate var canRemove: Bool {
    switch call {
    case .remove: true
    case .update(_, let to): to == nil
    default: false
    }
  }
}
