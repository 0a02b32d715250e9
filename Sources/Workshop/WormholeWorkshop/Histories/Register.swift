/// The register of a search, and the values that the steps not yet applied depend on.
///
/// Values are numbered in the order of their appearance, so that a table is an array.
struct Register {
  private enum Condition {
    case any
    case equals(Int)
    case differs(from: Int)
  }

  private enum Effect {
    case none
    case set(Int)
    case increment
  }

  /// The number of the current value.
  private(set) var value: Int

  private var conditions: [Condition] = []
  private var effects: [Effect] = []
  private let isRequired: [Bool]
  private var numbers: [HistoryValue?: Int] = [:]
  /// `nil`: the value of a register about which nothing is known.
  private var values: [HistoryValue??] = []

  // Counts of the steps not applied that must find a value, may find it, or can produce it.
  private var mustFind: [Int] = []
  private var mayFind: [Int] = []
  private var producers: [Int] = []
  /// The number of steps that observe the absence of a value, or change any value.
  private var minding = 0
  private var increments = 0

  init(_ steps: [Step], initial: HistoryValue??) {
    value = 0
    isRequired = steps.map(\.isRequired)
    if let initial {
      value = number(of: initial)
    } else {
      value = addValue(nil)
    }
    for step in steps {
      switch step.condition {
      case .any: conditions.append(.any)
      case .equals(let value): conditions.append(.equals(number(of: value)))
      case .differs(let value): conditions.append(.differs(from: number(of: value)))
      }
      switch step.effect {
      case .none: effects.append(.none)
      case .set(let value): effects.append(.set(number(of: value)))
      case .increment: effects.append(.increment)
      }
    }
    for step in steps.indices { count(step, by: 1) }
  }

  /// No remaining step can distinguish this value from another.
  var isUnseen: Bool { minding == 0 && mustFind[value] == 0 && mayFind[value] == 0 }

  func isPure(_ step: Int) -> Bool { if case .none = effects[step] { true } else { false } }

  func allows(_ step: Int) -> Bool {
    switch conditions[step] {
    case .any: true
    case .equals(let expected): value == expected
    case .differs(let unexpected): value != unexpected
    }
  }

  /// Returns whether the step is a plain write of a value that no step looks for.
  func writesUnseen(_ step: Int) -> Bool {
    guard case .any = conditions[step], case .set(let new) = effects[step] else { return false }
    return mustFind[new] == 0 && mayFind[new] == 0
  }

  /// Returns whether applying the step, which is allowed, would leave another step without the
  /// value that it must find.
  func strandsOthers(_ step: Int) -> Bool {
    guard increments == 0, case .set(let new) = effects[step], new != value else { return false }
    var looking = mustFind[value]
    if isRequired[step], case .equals = conditions[step] { looking -= 1 }
    return looking > 0 && producers[value] == 0
  }

  mutating func apply(_ step: Int) {
    count(step, by: -1)
    switch effects[step] {
    case .none: break
    case .set(let new): value = new
    case .increment:
      guard let known = values[value] else {
        preconditionFailure("an increment of a value about which nothing is known")
      }
      value = number(of: (known ?? 0) &+ 1)
    }
  }

  mutating func undo(_ step: Int, restoring before: Int) {
    value = before
    count(step, by: 1)
  }

  private mutating func count(_ step: Int, by amount: Int) {
    switch conditions[step] {
    case .any: break
    case .equals(let value):
      if isRequired[step] { mustFind[value] += amount } else { mayFind[value] += amount }
    case .differs: minding += amount
    }
    switch effects[step] {
    case .none: break
    case .set(let value): producers[value] += amount
    case .increment:
      increments += amount
      minding += amount
    }
  }

  private mutating func number(of value: HistoryValue?) -> Int {
    if let number = numbers[value] { return number }
    let number = addValue(.some(value))
    numbers[value] = number
    return number
  }

  private mutating func addValue(_ value: HistoryValue??) -> Int {
    values.append(value)
    mustFind.append(0)
    mayFind.append(0)
    producers.append(0)
    return values.count - 1
  }
}
