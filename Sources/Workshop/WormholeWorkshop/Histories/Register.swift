/// The register of a search, and the values that the steps not yet applied depend on.
///
/// Values are numbered in the order of their appearance, so that a table is an array.
struct Register {
  /// The numbers of the values of a step.
  private struct Numbers {
    let observed: Int?
    let forbidden: Int?
    let produced: Int?
  }

  /// The number of the current value.
  private(set) var value = 0

  private let steps: [Numbers]
  private let isRequired: [Bool]

  // Counts of the steps not applied that must find a value, may find it, or can produce it.
  private var mustFind: [Int]
  private var mayFind: [Int]
  private var producers: [Int]
  /// The number of steps that observe the absence of a value.
  private var minding = 0

  /// - Parameter initial: `nil` for the value of a register about which nothing is known.
  init(_ steps: [Step], initial: HistoryValue??) {
    var numbers: [HistoryValue??: Int] = [initial: 0]
    func number(of value: HistoryValue??) -> Int? {
      guard case .some = value else { return nil }
      let number = numbers[value] ?? numbers.count
      numbers[value] = number
      return number
    }
    self.steps = steps.map { step in
      Numbers(
        observed: number(of: step.observed), forbidden: number(of: step.forbidden),
        produced: number(of: step.produced))
    }
    isRequired = steps.map(\.isRequired)
    mustFind = Array(repeating: 0, count: numbers.count)
    mayFind = mustFind
    producers = mustFind
    for step in steps.indices { count(step, by: 1) }
  }

  /// No remaining step can distinguish this value from another.
  var isUnseen: Bool { minding == 0 && isUnsought(value) }

  private func isUnsought(_ value: Int) -> Bool { mustFind[value] == 0 && mayFind[value] == 0 }

  func isPure(_ step: Int) -> Bool { steps[step].produced == nil }

  func allows(_ step: Int) -> Bool {
    steps[step].observed ?? value == value && steps[step].forbidden != value
  }

  /// Returns whether the step is a plain write of a value that no step looks for.
  func writesUnseen(_ step: Int) -> Bool {
    guard steps[step].observed == nil, let new = steps[step].produced else { return false }
    return isUnsought(new)
  }

  /// Returns whether applying the step, which is allowed, would leave another step without the
  /// value that it must find.
  func strandsOthers(_ step: Int) -> Bool {
    guard let new = steps[step].produced, new != value else { return false }
    let isLooking = isRequired[step] && steps[step].observed != nil
    return mustFind[value] > (isLooking ? 1 : 0) && producers[value] == 0
  }

  mutating func apply(_ step: Int) {
    count(step, by: -1)
    if let new = steps[step].produced { value = new }
  }

  mutating func undo(_ step: Int, restoring before: Int) {
    value = before
    count(step, by: 1)
  }

  private mutating func count(_ step: Int, by amount: Int) {
    if let value = steps[step].observed {
      if isRequired[step] { mustFind[value] += amount } else { mayFind[value] += amount }
    }
    if steps[step].forbidden != nil { minding += amount }
    if let value = steps[step].produced { producers[value] += amount }
  }
}
