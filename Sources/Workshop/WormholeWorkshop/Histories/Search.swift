/// The search for an order of steps that a register can follow.
///
/// It is the search of Wing & Gong with Lowe's memory of visited configurations (“Testing for
/// linearizability”, 2017): try any step that is called before the first outstanding return, and
/// never enter a configuration (steps applied, value) twice. A configuration is identified by the
/// number of returns passed and the set of *open* steps applied, so its size does not grow with the
/// history.
///
/// Three rules, none of which can lose an answer, leave the search with almost no choices:
/// - A step that changes nothing and fits now is applied at once, because it affects no other step.
/// - A value is not overwritten while a required step that must find it is left and no step is left
///   that can produce it again.
/// - If no step looks for the current value, a required write of a value that no step looks for is
///   applied at once: an unseen value overwrites an unseen value.
struct Search {
  enum Result: Equatable {
    case found
    /// `returns`: the largest number of operations that could be passed, in the order of their
    /// returns.
    case impossible(returns: Int)
    case exhausted
  }

  private struct Configuration: Hashable {
    let passed: Int
    let value: HistoryValue??
    let open: Set<Int>
  }

  private let steps: [Step]
  private var register: Register
  private var timeline: Timeline

  private var passed = 0
  private var farthest = 0
  /// The applied steps that were not passed yet.
  private var open: Set<Int> = []
  private var isApplied: [Bool]
  /// The applied steps, with the value and the number of returns passed before each.
  private var trail: [(step: Int, value: HistoryValue??, passed: Int)] = []
  private var branches: [(trailLength: Int, candidatesStart: Int)] = []
  private var candidates: [Int] = []
  private var visited: Set<Configuration> = []

  /// Prepares a search; `initial` is the initial content of the register, `nil` a value that no
  /// step knows.
  init(_ steps: [Step], initial: HistoryValue??) {
    self.steps = steps
    register = Register(steps, initial: initial)
    timeline = Timeline(steps)
    isApplied = Array(repeating: false, count: steps.count)
  }

  /// Runs until an answer is found or `work` steps have been tried; subtracts these from `work`.
  mutating func run(work: inout Int) -> Result {
    while passed < timeline.returns.count {
      guard work > 0 else { return .exhausted }
      work -= 1
      if let step = forcedStep() {
        apply(step)
        continue
      }
      let configuration = Configuration(passed: passed, value: register.value, open: open)
      if visited.insert(configuration).inserted { branch() }
      guard let step = nextCandidate() else { return .impossible(returns: farthest) }
      apply(step)
    }
    return .found
  }

  private func forcedStep() -> Int? {
    let unseen = register.isUnseen
    var write: Int?
    var candidate = timeline.firstOpen()
    while let step = candidate {
      if register.isPure(step) {
        if register.allows(step) { return step }
      } else if unseen, write == nil, steps[step].isRequired, register.writesUnseen(step) {
        write = step
      }
      candidate = timeline.nextOpen(after: step)
    }
    return write
  }

  /// Pushes the choices of the current configuration; optional steps are tried last.
  private mutating func branch() {
    branches.append((trail.count, candidates.count))
    var optional: [Int] = []
    var required: [Int] = []
    var candidate = timeline.firstOpen()
    while let step = candidate {
      if register.allows(step), !register.blocksOthers(step) {
        if steps[step].isRequired {
          required.append(step)
        } else if !optional.contains(where: { steps[$0].isTwin(of: steps[step]) }) {
          // Among twins that never return, the first one called can replace all others.
          optional.append(step)
        }
      }
      candidate = timeline.nextOpen(after: step)
    }
    // Taken from the end.
    candidates.append(contentsOf: optional.reversed())
    candidates.append(contentsOf: required.reversed())
  }

  private mutating func nextCandidate() -> Int? {
    while let branch = branches.last {
      while trail.count > branch.trailLength { undo() }
      if candidates.count > branch.candidatesStart { return candidates.removeLast() }
      branches.removeLast()
    }
    return nil
  }

  private mutating func apply(_ step: Int) {
    trail.append((step, register.value, passed))
    timeline.lift(step, returning: steps[step].isRequired)
    register.apply(step)
    isApplied[step] = true
    open.insert(step)
    while passed < timeline.returns.count, isApplied[timeline.returns[passed]] {
      open.remove(timeline.returns[passed])
      passed += 1
    }
    farthest = max(farthest, passed)
  }

  private mutating func undo() {
    let (step, value, passedBefore) = trail.removeLast()
    while passed > passedBefore {
      passed -= 1
      open.insert(timeline.returns[passed])
    }
    open.remove(step)
    isApplied[step] = false
    register.undo(step, restoring: value)
    timeline.putBack(step, returning: steps[step].isRequired)
  }
}

/// The calls and returns of steps in the order of time, as a list from which steps can be lifted
/// and put back (Wing & Gong, “Testing and verifying concurrent objects”, 1993).
///
/// Entry 2·s is the call of step s and entry 2·s+1 its return; steps that may be left out never
/// return. At equal times calls come before returns, so operations that only touch count as
/// concurrent.
struct Timeline {
  /// The steps in the order of their returns.
  let returns: [Int]

  private var next: [Int]
  private var previous: [Int]
  private let head: Int

  init(_ steps: [Step]) {
    var events: [(time: UInt64, entry: Int)] = []
    events.reserveCapacity(2 * steps.count)
    for (step, details) in steps.enumerated() {
      events.append((details.invocation, 2 * step))
      if let response = details.response { events.append((response, 2 * step + 1)) }
    }
    events.sort { left, right in
      if left.time != right.time { return left.time < right.time }
      return (left.entry % 2, left.entry) < (right.entry % 2, right.entry)
    }

    head = 2 * steps.count
    next = Array(repeating: head, count: head + 1)
    previous = next
    var returns: [Int] = []
    var last = head
    for (_, entry) in events {
      next[last] = entry
      previous[entry] = last
      last = entry
      if entry % 2 == 1 { returns.append(entry / 2) }
    }
    next[last] = head
    previous[head] = last
    self.returns = returns
  }

  /// Returns the first unapplied step that is called before the first outstanding return, or the
  /// next one after a step.
  func firstOpen() -> Int? { open(next[head]) }
  func nextOpen(after step: Int) -> Int? { open(next[2 * step]) }

  private func open(_ entry: Int) -> Int? { entry == head || entry % 2 == 1 ? nil : entry / 2 }

  mutating func lift(_ step: Int, returning: Bool) {
    unlink(2 * step)
    if returning { unlink(2 * step + 1) }
  }

  /// Undoes the latest `lift` that is not undone.
  mutating func putBack(_ step: Int, returning: Bool) {
    if returning { relink(2 * step + 1) }
    relink(2 * step)
  }

  private mutating func unlink(_ entry: Int) {
    next[previous[entry]] = next[entry]
    previous[next[entry]] = previous[entry]
  }

  private mutating func relink(_ entry: Int) {
    next[previous[entry]] = entry
    previous[next[entry]] = entry
  }
}
