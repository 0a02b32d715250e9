/// An operation as the checker sees it: the time in which it may be applied, and its effect.
struct Step {
  enum Condition: Hashable {
    case any
    case equals(HistoryValue?)
    case differs(from: HistoryValue?)
  }

  enum Effect: Hashable {
    case none
    case set(HistoryValue?)
    case increment
  }

  /// The index of the operation in the history.
  let index: Int
  var invocation: UInt64
  /// `nil`: the step may be left out.
  var response: UInt64?
  let condition: Condition
  let effect: Effect

  /// Returns whether only the times differ from another step's.
  func isTwin(of other: Step) -> Bool { condition == other.condition && effect == other.effect }

  var isRequired: Bool { response != nil }

  /// The value that the step must find; `nil` if it requires none.
  var observed: HistoryValue?? {
    if case .equals(let value) = condition { .some(value) } else { nil }
  }

  /// The value that the step leaves; `nil` if it leaves none, or one that depends on the found
  /// value.
  var produced: HistoryValue?? { if case .set(let value) = effect { .some(value) } else { nil } }
}

extension Step {
  /// Creates the step of an operation; `nil` for an operation that neither observes nor changes
  /// anything.
  init?(_ operation: HistoryOperation, index: Int) {
    var condition = Condition.any
    var effect = Effect.none
    switch (operation.call, operation.outcome) {
    case (.read, .completed(.value(let value), _)): condition = .equals(value)
    case (.read, _): return nil
    case (.write(let value), _): effect = .set(value)
    case (.remove, _): effect = .set(nil)
    case (.compareAndSwap(let expected, _), .completed(.swapped(false), _)):
      condition = .differs(from: expected)
    case (.compareAndSwap(let expected, let new), _):
      (condition, effect) = (.equals(expected), .set(new))
    case (.update(let from, let to), _): (condition, effect) = (.equals(from), .set(to))
    case (.increment, .completed(.value(let found), _)):
      (condition, effect) = (.equals(found), .set((found ?? 0) &+ 1))
    case (.increment, _): effect = .increment
    }
    if case .equals(let found) = condition, effect == .set(found) { effect = .none }
    if effect == .none, operation.outcome == .unknown { return nil }
    self.init(
      index: index, invocation: operation.invocation, response: operation.response,
      condition: condition, effect: effect)
  }
}

/// Settles the steps that may be left out as far as they can be known, without changing the
/// verdict.
///
/// Unknown operations stay open forever and make checking expensive. In histories whose writers
/// never write the same value twice, none of them remains.
///
/// - If an operation demonstrably found the value of a step, and no other step can have produced
///   it, the step took effect before the first answer that shows the value.
/// - If no operation looks for the value of a step, and none observes that a value was *absent*,
///   the step makes no difference: the next write overwrites it unseen.
func settleUnknown(in steps: [Step], initial: HistoryValue?) -> [Step] {
  var steps = steps
  while true {
    let table = ObservationTable(steps, initial: initial)
    var changed = false
    var settled: [Step] = []
    settled.reserveCapacity(steps.count)
    for var step in steps {
      if !step.isRequired, case .set(let value) = step.effect {
        if let deadline = table.firstSeen[value], table.producers[value] == 1 {
          step.response = max(deadline, step.invocation)
          changed = true
        } else if table.looks[value] == nil, !table.dependsOnAbsence {
          changed = true
          continue
        }
      }
      settled.append(step)
    }
    steps = settled
    if !changed || table.hasIncrements { return steps }
  }
}

private struct ObservationTable {
  /// The first answer of an operation that found the value.
  var firstSeen: [HistoryValue?: UInt64] = [:]
  /// The number of steps, left out or not, that look for the value.
  var looks: [HistoryValue?: Int] = [:]
  /// The number of ways in which the register can come to hold the value.
  var producers: [HistoryValue?: Int]
  /// Whether some step is possible only in the *absence* of a value, or changes any value.
  var dependsOnAbsence = false
  var hasIncrements = false

  init(_ steps: [Step], initial: HistoryValue?) {
    producers = [initial: 1]
    for step in steps {
      switch step.condition {
      case .any: break
      case .differs: dependsOnAbsence = true
      case .equals(let value):
        looks[value, default: 0] += 1
        if let response = step.response {
          firstSeen[value] = min(firstSeen[value] ?? .max, response)
        }
      }
      switch step.effect {
      case .none: break
      case .set(let value): producers[value, default: 0] += 1
      case .increment: (hasIncrements, dependsOnAbsence) = (true, true)
      }
    }
    // An increment of unknown effect may produce any value, so no producer is the only one.
    if hasIncrements { firstSeen = [:] }
  }
}
