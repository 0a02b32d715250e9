/// The register of a search, and the values that the steps not yet applied depend on.
struct Register {
  /// The current value; `nil` if nothing is known about it.
  private(set) var value: HistoryValue??

  private let steps: [Step]

  // Counts of the steps not applied that must find a value, may find it, or can produce it.
  private var mustFind: [HistoryValue?: Int] = [:]
  private var mayFind: [HistoryValue?: Int] = [:]
  private var producers: [HistoryValue?: Int] = [:]
  /// The number of steps that observe the absence of a value.
  private var minding = 0

  init(_ steps: [Step], initial: HistoryValue??) {
    self.steps = steps
    value = initial
    for step in steps.indices { count(step, by: 1) }
  }

  /// No remaining step can distinguish this value from another.
  var isUnseen: Bool { minding == 0 && (value.map(isUnsought) ?? true) }

  private func isUnsought(_ value: HistoryValue?) -> Bool {
    mustFind[value, default: 0] == 0 && mayFind[value, default: 0] == 0
  }

  func isPure(_ step: Int) -> Bool { steps[step].produced == nil }

  func allows(_ step: Int) -> Bool {
    (steps[step].observed == nil || steps[step].observed == value)
      && (steps[step].forbidden == nil || steps[step].forbidden != value)
  }

  /// Returns whether the step is a plain write of a value that no step looks for.
  func writesUnseen(_ step: Int) -> Bool {
    guard steps[step].observed == nil, let new = steps[step].produced else { return false }
    return isUnsought(new)
  }

  /// Returns whether applying the step, which is allowed, would leave another step without the
  /// value that it must find.
  func blocksOthers(_ step: Int) -> Bool {
    guard let value, let new = steps[step].produced, new != value else { return false }
    let isLooking = steps[step].isRequired && steps[step].observed != nil
    return mustFind[value, default: 0] > (isLooking ? 1 : 0) && producers[value, default: 0] == 0
  }

  mutating func apply(_ step: Int) {
    count(step, by: -1)
    if let new = steps[step].produced { value = .some(new) }
  }

  mutating func undo(_ step: Int, restoring before: HistoryValue??) {
    value = before
    count(step, by: 1)
  }

  private mutating func count(_ step: Int, by amount: Int) {
    if let value = steps[step].observed {
      if steps[step].isRequired {
        mustFind[value, default: 0] += amount
      } else {
        mayFind[value, default: 0] += amount
      }
    }
    if steps[step].forbidden != nil { minding += amount }
    if let value = steps[step].produced { producers[value, default: 0] += amount }
  }
}

/// An operation as the checker sees it: the time in which it may be applied, and its effect.
struct Step {
  /// The index of the operation in the history.
  let index: Int
  let invocation: UInt64
  /// `nil`: the step may be left out.
  var response: UInt64?
  /// The value that the step must find; `nil` if it requires none.
  let observed: HistoryValue??
  /// The value that the step must not find; `nil` if it forbids none.
  let forbidden: HistoryValue??
  /// The value that the step leaves; `nil` if it changes nothing.
  let produced: HistoryValue??

  var isRequired: Bool { response != nil }

  /// Returns whether only the times differ from another step's.
  func isTwin(of other: Step) -> Bool {
    observed == other.observed && forbidden == other.forbidden && produced == other.produced
  }
}

extension Step {
  /// Creates the step of an operation; `nil` for an operation that neither observes nor changes
  /// anything.
  init?(_ operation: HistoryOperation, index: Int) {
    var observed: HistoryValue??
    var forbidden: HistoryValue??
    var produced: HistoryValue??
    switch (operation.call, operation.outcome) {
    case (.read, .completed(.value(let value), _)): observed = .some(value)
    case (.read, _): return nil
    case (.write(let value), _): produced = .some(value)
    case (.compareAndSwap(let expected, _), .completed(.swapped(false), _)):
      forbidden = .some(expected)
    case (.compareAndSwap(let expected, let new), _):
      (observed, produced) = (.some(expected), .some(new))
    case (.update(let from, let to), _): (observed, produced) = (.some(from), .some(to))
    }
    if observed == produced { produced = nil }
    if produced == nil, operation.outcome == .unknown { return nil }
    self.init(
      index: index, invocation: operation.invocation, response: operation.response,
      observed: observed, forbidden: forbidden, produced: produced)
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
  let dependsOnAbsence = steps.contains { $0.forbidden != nil }
  while true {
    // The first answer of an operation that found the value.
    var firstSeen: [HistoryValue?: UInt64] = [:]
    // The values that a step looks for, whether it is left out or not.
    var sought: Set<HistoryValue?> = []
    // The number of ways in which the register can come to hold the value.
    var producers: [HistoryValue?: Int] = [initial: 1]
    for step in steps {
      if let value = step.observed {
        sought.insert(value)
        if let response = step.response {
          firstSeen[value] = min(firstSeen[value] ?? .max, response)
        }
      }
      if let value = step.produced { producers[value, default: 0] += 1 }
    }
    var changed = false
    steps = steps.compactMap { step in
      guard !step.isRequired, let value = step.produced else { return step }
      var settled = step
      if let deadline = firstSeen[value], producers[value] == 1 {
        settled.response = max(deadline, step.invocation)
      } else if sought.contains(value) || dependsOnAbsence {
        return step
      }
      changed = true
      return settled.isRequired ? settled : nil
    }
    if !changed { return steps }
  }
}
