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
  private var isStorm = false
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
    let violation = oracle.violation() ?? (isStorm ? oracle.lateness() : nil)
    return (outcome, violation.map { Finding(schedule: schedule, violation: $0) })
  }

  // MARK: All schedules with few choices

  /// All schedules with at most two choices, the ones with fewer first.
  ///
  /// - Parameter limit: The largest number of schedules; those with two choices are drawn then.
  func exhaust(limit: Int) throws -> Finding? {
    let first = runner.count
    let orders = plan.roles.indices.map { [Schedule.Choice(step: 0, action: .go, process: $0)] }
    // First the names that each process touches.
    for choices in orders { learn(try check(Schedule(plan: plan, choices: choices)).0) }
    var level = orders
    for depth in 0...2 {
      var next: (atChanges: [[Schedule.Choice]], others: [[Schedule.Choice]]) = ([], [])
      for choices in level {
        guard !isOver, runner.count - first < limit else { return nil }
        let (outcome, finding) = try check(Schedule(plan: plan, choices: choices))
        if let finding { return finding }
        learn(outcome)
        if depth < 2 {
          let found = continuations(of: choices, outcome)
          next.atChanges += found.atChanges
          next.others += found.others
        }
      }
      level = next.atChanges.shuffled(using: &random) + next.others.shuffled(using: &random)
    }
    return nil
  }

  private func learn(_ outcome: Outcome) {
    for index in 0..<Int32(outcome.steps) {
      let step = seam_step_at(index)
      guard Int(step.process) < touched.count else { continue }
      let (a, b, c, d) = step.touched
      for name in [a, b, c, d] where name != 0 {
        let isWrite = name & 1 == 1
        touched[Int(step.process)][name & ~1, default: false] =
          touched[Int(step.process)][name & ~1] == true || isWrite
      }
      if c != 0 { connect(a & ~1, c & ~1) }
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
    let (a, b, c, d) = step.touched
    return [a, b, c, d].contains { name in
      guard name != 0 else { return false }
      let other = touched[process][root(name & ~1)] ?? touched[process][name & ~1]
      return other.map { $0 || name & 1 == 1 } ?? false
    }
  }

  /// Each way to make one more choice, after those of a schedule that has run; first those just before or
  /// after a change, which matter more.
  ///
  /// A process that tries again and again makes the same calls with the same results; only the first
  /// two of them count.
  private func continuations(
    of choices: [Schedule.Choice], _ outcome: Outcome
  ) -> (atChanges: [[Schedule.Choice]], others: [[Schedule.Choice]]) {
    var result: ([[Schedule.Choice]], [[Schedule.Choice]]) = ([], [])
    var times: [[Int]: Int] = [:]
    var hasChanged = plan.roles.map { _ in false }
    let last = choices.last?.step ?? 0
    for index in 0..<outcome.steps {
      let step = seam_step_at(Int32(index))
      let own = Int(step.process)
      guard own < plan.roles.count else { continue }
      let call = [own, Int(step.call), Int(step.touched.0), Int(step.result)]
      times[call, default: 0] += 1
      let changes = step.touched.0 & 1 == 1
      defer { hasChanged[own] = changes }
      guard index > last, times[call, default: 0] <= 2 else { continue }
      func add(_ actions: (Schedule.Choice.Action, Int)...) {
        let next =
          choices + actions.map { Schedule.Choice(step: index, action: $0.0, process: $0.1) }
        if changes || hasChanged[own] || actions[0].0 == .stop {
          result.0.append(next)
        } else {
          result.1.append(next)
        }
      }
      for other in plan.roles.indices where other != own {
        if step.stopped >> other & 1 == 1 { add((.resume, other), (.go, other)) }
      }
      guard step.waits == 0 else { continue }
      let others = plan.roles.indices.filter { $0 != own && isShared(step, with: $0) }
      for other in others {
        if (step.ready | step.polling) >> other & 1 == 1 { add((.go, other)) }
        if step.ready >> other & 1 == 0, step.timed >> other & 1 == 1 { add((.time, other)) }
      }
      if !others.isEmpty {
        add((.stop, own))
        add((.kill, own))
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
    [.go, .go, .go], [.kill, .stop, .resume], [],
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
        let isNear = !next.atChanges.isEmpty && (next.others.isEmpty || random.chance(90))
        // Each kind of choice is as probable as another, however many steps allow it.
        let kinds = Dictionary(grouping: isNear ? next.atChanges : next.others) {
          $0[choices.count].action
        }
        guard !kinds.isEmpty else { break }
        let wanted = level < pattern.count ? kinds[pattern[level]] : nil
        choices = random.pick(wanted ?? random.pick(kinds.values.map(\.self)))
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
    isStorm = true
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
