import WormholeSeam
import WormholeWorkshop

/// A schedule that breaks a promise.
struct Finding {
  var schedule: Schedule
  let violation: String
}

/// Searches the schedules of one plan.
final class Exploration {
  private let runner: Runner
  private let plan: Schedule.Plan
  /// What each process has touched in any schedule so far: names, and whether it may change them.
  private var touched: [[UInt32: Bool]]
  /// Names that a rename has connected.
  private var aliases: [UInt32: UInt32] = [:]
  private var random: SeededGenerator
  /// How long after the last choice each operation has to end, in nanoseconds; nil for any time.
  var patience: Int64?
  private let deadline: Int64
  private let clock: () -> Int64

  /// - Parameters:
  ///   - seconds: The limit of the search.
  ///   - clock: What they are counted by.
  init(
    _ runner: Runner, _ plan: Schedule.Plan, seed: UInt64, seconds: Double,
    clock: @escaping () -> Int64 = seam_real_nanoseconds
  ) {
    self.clock = clock
    self.runner = runner
    self.plan = plan
    touched = plan.roles.map { _ in [:] }
    random = SeededGenerator(seed: seed)
    deadline = clock() + Int64(seconds * 1e9)
  }

  private var isOver: Bool { clock() >= deadline }

  /// Runs a schedule; returns what is wrong with it.
  private func check(_ schedule: Schedule) throws -> (Outcome, Finding?) {
    let outcome = try runner.run(schedule)
    let oracle = Oracle(plan: plan, outcome: outcome)
    let violation = oracle.violation() ?? patience.flatMap(oracle.lateness)
    return (outcome, violation.map { Finding(schedule: schedule, violation: $0) })
  }

  // MARK: All schedules with few choices

  /// The choices of a schedule that has run, and what comes after them.
  private typealias Extended = (choices: [Schedule.Choice], next: Continuation?)

  /// All schedules with at most two choices, the ones with fewer first.
  ///
  /// - Parameter limit: The largest number of schedules; those with two choices are drawn then.
  func exhaust(limit: Int) throws -> Finding? {
    let first = runner.count
    let orders = plan.roles.indices.map { [Schedule.Choice(step: 0, action: .go, process: $0)] }
    // First the names that each process touches.
    for choices in orders { learn(try check(Schedule(plan: plan, choices: choices)).0) }
    var level: [Extended] = orders.map { ($0, nil) }
    for depth in 0...2 {
      var next: (atChanges: [Extended], others: [Extended]) = ([], [])
      for (before, found) in level {
        let choices = found?.appended(to: before) ?? before
        guard !isOver, runner.count - first < limit else { return nil }
        let (outcome, finding) = try check(Schedule(plan: plan, choices: choices))
        if let finding { return finding }
        learn(outcome)
        if depth < 2 {
          for found in continuations(of: choices, outcome) {
            if found.isAtChange {
              next.atChanges.append((choices, found))
            } else {
              next.others.append((choices, found))
            }
          }
        }
      }
      level = next.atChanges.shuffled(using: &random) + next.others.shuffled(using: &random)
    }
    return nil
  }

  private func learn(_ outcome: Outcome) {
    for index in 0..<Int32(outcome.steps) {
      let step = seam_step_at(index)
      let own = Int(step.process)
      guard own < touched.count else { continue }
      step.withNames { names in
        for name in names where name != 0 {
          if touched[own][name & ~1] != true { touched[own][name & ~1] = name & 1 == 1 }
        }
        if names[2] != 0 { connect(names[0] & ~1, names[2] & ~1) }
      }
    }
  }

  private func connect(_ a: UInt32, _ b: UInt32) {
    let (a, b) = (root(a), root(b))
    guard a != b else { return }
    aliases[a] = b
    for process in touched.indices {
      guard let isWrite = touched[process][a] else { continue }
      touched[process][b] = touched[process][b] == true || isWrite
    }
  }

  private func root(_ name: UInt32) -> UInt32 {
    var name = name
    while let next = aliases[name] { name = next }
    return name
  }

  /// Whether another process touches what a step touches, and one of them may change it.
  private func isShared(_ step: seam_step, with process: Int) -> Bool {
    step.withNames { names in
      names.contains { name in
        guard name != 0 else { return false }
        let other = touched[process][root(name & ~1)] ?? touched[process][name & ~1]
        return other.map { $0 || name & 1 == 1 } ?? false
      }
    }
  }

  /// One choice more, or two at one step: those just before or after a change matter more.
  private struct Continuation {
    let choice: Schedule.Choice
    var then: Schedule.Choice?
    let isAtChange: Bool

    func appended(to choices: [Schedule.Choice]) -> [Schedule.Choice] {
      choices + [choice] + (then.map { [$0] } ?? [])
    }
  }

  /// What is called, and what comes of it.
  private struct Call: Hashable {
    let process: UInt8
    let call: UInt8
    let name: UInt32
    let result: Int32
  }

  /// Each way to make one more choice, after those of a schedule that has run.
  ///
  /// A process that tries again and again makes the same calls with the same results; only the first
  /// two of them count, or four that change something.
  private func continuations(of choices: [Schedule.Choice], _ outcome: Outcome) -> [Continuation] {
    var result: [Continuation] = []
    var times: [Call: Int] = [:]
    var hasChanged = plan.roles.map { _ in false }
    // What a process reads before its first change may have decided about it.
    var onlyReads = plan.roles.map { _ in true }
    let last = choices.last?.step ?? 0
    for index in 0..<outcome.steps {
      let step = seam_step_at(Int32(index))
      let own = Int(step.process)
      guard own < plan.roles.count else { continue }
      let name = step.touched.0
      let call = Call(process: step.process, call: step.call, name: name, result: step.result)
      times[call, default: 0] += 1
      let changes = name & 1 == 1
      if changes { onlyReads[own] = false }
      defer { hasChanged[own] = changes }
      let limit = changes && step.result == 0 ? 4 : 2
      guard index > last, times[call, default: 0] <= limit else { continue }
      func add(_ action: Schedule.Choice.Action, _ process: Int, thenGo: Bool = false) {
        result.append(
          Continuation(
            choice: .init(step: index, action: action, process: process),
            then: thenGo ? .init(step: index, action: .go, process: process) : nil,
            isAtChange: changes || hasChanged[own] || onlyReads[own] || action == .stop))
      }
      for other in plan.roles.indices where other != own {
        if step.stopped >> other & 1 == 1 { add(.resume, other, thenGo: true) }
      }
      guard step.waits == 0 else { continue }
      var isAlone = true
      for other in plan.roles.indices where other != own && isShared(step, with: other) {
        isAlone = false
        if (step.ready | step.polling) >> other & 1 == 1 { add(.go, other) }
        if step.ready >> other & 1 == 0, step.timed >> other & 1 == 1 { add(.time, other) }
      }
      if !isAlone {
        add(.stop, own)
        add(.kill, own)
      }
    }
    return result
  }

  // MARK: Schedules with random priorities

  /// Draws schedules with priorities that change twice (PCT, depth 3), and with a stop or a kill.
  func draw(limit: Int) throws -> Finding? {
    for _ in 0..<limit {
      guard !isOver else { return nil }
      var schedule = Schedule(plan: plan, seed: random.next())
      let victim = Int.random(in: plan.roles.indices, using: &random)
      let step = Int.random(in: 1..<120, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: schedule.choices = [.init(step: step, action: .kill, process: victim)]
      case 1, 2:
        schedule.choices = [.init(step: step, action: .stop, process: victim)]
        let end = step + Int.random(in: 1..<120, using: &random)
        schedule.choices.append(.init(step: end, action: .resume, process: victim))
      default: break
      }
      let (outcome, finding) = try check(schedule)
      if var finding {
        finding.schedule.choices = outcome.choices
        finding.schedule.seed = nil
        return finding
      }
    }
    return nil
  }

  /// Kinds of choices that bring a late process back in the middle of another one's work.
  private static let patterns: [[Schedule.Choice.Action]] = [
    [.stop, .resume, .go], [.stop, .resume, .go], [.stop, .go, .resume], [.stop, .kill, .resume],
    [.go, .go, .go], [.stop, .go, .go], [.kill, .stop, .resume], [],
  ]

  /// Makes one choice more at a time, drawn from those that the schedule before it allows.
  func descend(depth: Int, limit: Int) throws -> Finding? {
    let first = runner.count
    while runner.count - first < limit {
      let process = Int.random(in: plan.roles.indices, using: &random)
      let pattern = random.pick(Self.patterns)
      var choices = [Schedule.Choice(step: 0, action: .go, process: process)]
      for level in 0...depth {
        guard !isOver else { return nil }
        let (outcome, finding) = try check(Schedule(plan: plan, choices: choices))
        if let finding { return finding }
        learn(outcome)
        guard level < depth else { break }
        let next = continuations(of: choices, outcome)
        let isNear = random.chance(90)
        let near = next.filter { $0.isAtChange == isNear }
        // Each kind of choice is as probable as another, however many steps allow it.
        let kinds = Dictionary(grouping: near.isEmpty ? next : near, by: \.choice.action)
        guard !kinds.isEmpty else { break }
        let wanted = level < pattern.count ? kinds[pattern[level]] : nil
        choices = random.pick(wanted ?? random.pick(kinds.values.map(\.self))).appended(
          to: choices)
      }
    }
    return nil
  }

  /// First what has the fewest choices, then what is drawn.
  func search(limit: Int) throws -> Finding? {
    let isPair = plan.roles.count == 2
    if let found = try exhaust(limit: min(limit, isPair ? 900 : 150)) { return found }
    let first = runner.count
    while !isOver, runner.count - first < limit {
      if let found = try descend(depth: 3, limit: 60) { return found }
      if let found = try draw(limit: 10) { return found }
    }
    return nil
  }

  /// Draws storms of choices, after which all go on: then each operation ends within a second.
  func storm(limit: Int) throws -> Finding? {
    for _ in 0..<limit {
      guard !isOver else { return nil }
      var schedule = Schedule(plan: plan)
      var step = 0
      for _ in 0..<Int.random(in: 3...8, using: &random) {
        step += Int.random(in: 1..<40, using: &random)
        let action = [Schedule.Choice.Action.go, .time, .stop, .stop, .resume, .kill].randomElement(
          using: &random)
        let process = Int.random(in: plan.roles.indices, using: &random)
        if let action {
          schedule.choices.append(.init(step: step, action: action, process: process))
        }
      }
      schedule.choices += plan.roles.indices.map {
        .init(step: step + 1, action: .resume, process: $0)
      }
      if let finding = try check(schedule).1 { return finding }
    }
    return nil
  }

  // MARK: Smaller findings

  /// Leaves out each choice that the violation does not need.
  func shortened(_ finding: Finding) throws -> Finding {
    var result = finding
    var index = 0
    let last = runner.count + 100
    while index < result.schedule.choices.count, runner.count < last {
      var schedule = result.schedule
      schedule.choices.remove(at: index)
      if let smaller = try check(schedule).1 { result = smaller } else { index += 1 }
    }
    return result
  }
}

extension seam_step {
  /// Passes the names that it touches; the lowest bit of each says whether it may change it.
  fileprivate func withNames<Result>(_ body: (UnsafeBufferPointer<UInt32>) -> Result) -> Result {
    withUnsafeBytes(of: touched) { body($0.bindMemory(to: UInt32.self)) }
  }
}
