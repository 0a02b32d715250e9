/// An operation as the checker sees it: when it may be applied to the register, and what it does to it.
struct Step {
  enum Condition: Hashable {
    case any
    case equals(Value?)
    case differs(from: Value?)
  }

  enum Effect: Hashable {
    case none
    case set(Value?)
    case increment
  }

  /// Where the operation is in the history.
  let index: Int
  var invocation: UInt64
  /// `nil`: it may be left out.
  var response: UInt64?
  let condition: Condition
  let effect: Effect

  /// Told apart from the others only by its times.
  func isTwin(of other: Step) -> Bool { condition == other.condition && effect == other.effect }

  var isRequired: Bool { response != nil }

  /// The value it must find; `nil` where it demands none.
  var observed: Value?? {
    if case .equals(let value) = condition { .some(value) } else { nil }
  }

  /// The value it leaves; `nil` where it leaves none, or one that depends.
  var produced: Value?? {
    if case .set(let value) = effect { .some(value) } else { nil }
  }
}

extension Step {
  /// The step of an operation; `nil` for one that neither tells nor does anything.
  init?(_ operation: Operation, index: Int) {
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

/// Settles what can be known about the steps that may be left out, without changing the verdict.
///
/// Unknown operations stay open for ever and are what makes checking expensive; in histories whose
/// writers never write the same value twice, this leaves none of them.
///
/// - A step whose value somebody demonstrably found, and that nobody else can have produced, took effect
///   before the first answer that shows the value.
/// - A step whose value nobody looks for, where nobody tells that a value was *not* there, makes no
///   difference: whatever comes after it overwrites it unseen.
func settleUnknown(in steps: [Step], initial: Value?) -> [Step] {
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
  var firstSeen: [Value?: UInt64] = [:]
  /// How many steps, left out or not, look for the value.
  var looks: [Value?: Int] = [:]
  /// In how many ways the register can come to hold the value.
  var producers: [Value?: Int]
  /// Some step is possible only where a value is *not*, or works upon any value.
  var dependsOnAbsence = false
  var hasIncrements = false

  init(_ steps: [Step], initial: Value?) {
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
    // An increment of unknown effect may produce anything: then no producer is the only one.
    if hasIncrements { firstSeen = [:] }
  }
}
