import Wormhole
import WormholeSeam
import WormholeSystem
import WormholeWorkshop

@main
enum Main {
  static let help = """
    Runs two or three processes step by step at their system calls, in chosen orders, and checks what they
    promise. See HowItIsTested in the documentation.

    USAGE: explore [MODE] [OPTIONS]

    MODES:
      --pairs              Each pair of operations on one name, with at most two choices. (default)
      --triples            Three processes with random priorities, stops and kills.
      --mutants [RULES]    Leaves each rule out in turn, or each of a list, and has to find that.
      --past [DEFECTS]     The same with defects that the code had once.
      --liveness           After a storm of choices, every wait has to end within a second.
      --plan PLAN          One plan, for example "update a; read a | remove a".
      --replay FILE        Repeats a finding, and prints its steps, with a column for each process.

    OPTIONS:
      --seed N             What is drawn. (default: the time)
      --seconds N          The time for all plans (default: 60), or the time of a processor for each mutant
                           (default: 120, which two processors need a minute for).
      --limit N            The number of schedules for each plan. (default: what the time allows)
      --share K/N          Every Nth plan, beginning with the Kth; for several explorers at once.
      --without RULE       Leaves a rule out.
      --times N            How often a finding is repeated. (default: 1)
      --keep DIRECTORY     Where findings are stored. (default: .)

    Status 0: nothing was found, or each mutant; 1: otherwise; 64: usage.
    """

  static func main() {
    let share = CommandLine.arguments.firstIndex(of: "--share").map {
      CommandLine.arguments[$0 + 1]
    }
    let core = share?.split(separator: "/").first.flatMap { Int32($0) }
    seam_open(CommandLine.unsafeArgv, core ?? -1)
    var options: [String: String] = [:]
    var arguments = CommandLine.arguments.dropFirst()
    while let name = arguments.popFirst() {
      let value = arguments.first.map { $0.hasPrefix("--") ? "" : $0 } ?? ""
      if !value.isEmpty { arguments.removeFirst() }
      options[name] = value
    }
    let known = help.split(separator: " ").filter { $0.hasPrefix("--") }
    guard options.keys.allSatisfy({ known.contains($0[...]) }) else {
      print(help)
      Program.exit(options["--help"] == nil ? 64 : 0)
    }
    do {
      let session = Session(options)
      Program.exit(try session.run() ? 0 : 1)
    } catch {
      print("explore: \(error)")
      Program.exit(70)
    }
  }
}

/// One run of the program.
struct Session {
  let options: [String: String]
  let seed: UInt64
  let runner = Runner(directory: "/dev/shm/explore")
  private let began = seam_real_nanoseconds()

  init(_ options: [String: String]) {
    self.options = options
    seed = options["--seed"].flatMap { UInt64($0) } ?? bootTimeNanoseconds() / 1_000_000 % 1_000_000
  }

  private var seconds: Double { options["--seconds"].flatMap { Double($0) } ?? 60 }
  private var limit: Int { options["--limit"].flatMap { Int($0) } ?? .max }
  private var spent: Double { Double(seam_real_nanoseconds() - began) / 1e9 }

  private func share<Item>(of items: [Item]) -> [Item] {
    let share = options["--share"]?.split(separator: "/").compactMap { Int($0) } ?? [0, 1]
    return items.indices.filter { $0 % share[1] == share[0] }.map { items[$0] }
  }

  /// - Returns: Whether all is as it should be.
  func run() throws -> Bool {
    try makeDirectory(runner.directory, at: Directory.current, mode: 0o700)
    if let file = options["--replay"] { return try replay(file) }
    print("explore: seed \(seed)")
    defer {
      let each = Double(seam_used_nanoseconds()) / 1e6 / Double(max(1, runner.count))
      print(
        "\(runner.count) schedules in \(rounded(spent)) s, \(rounded(each)) ms of a processor each")
    }
    if let rules = options["--mutants"] { return try find(rules, of: Plans.mutants) }
    if let defects = options["--past"] { return try find(defects, of: Plans.past) }
    var plans =
      options["--triples"] != nil || options["--liveness"] != nil ? Plans.triples : Plans.pairs
    if let plan = options["--plan"] { plans = [plan] }
    plans = share(of: plans)
    var isFine = true
    for (index, plan) in plans.enumerated() {
      let time = (seconds - spent) / Double(plans.count - index)
      let first = runner.count
      let finding = try explore(.init(plan, mutant: options["--without"]), seconds: time)
      print("\(runner.count - first)\t\(plan)\(finding == nil ? "" : "\tFOUND")")
      if let finding { try keep(finding) }
      isFine = isFine && finding == nil
    }
    return isFine
  }

  private func explore(
    _ plan: Schedule.Plan, isLate: Bool = false, seconds: Double
  ) throws -> Finding? {
    // A rule is searched for as long on a busy machine as on a quiet one.
    let isSearch = options["--mutants"] != nil || options["--past"] != nil
    let clock = isSearch ? seam_used_nanoseconds : seam_real_nanoseconds
    let exploration = Exploration(runner, plan, seed: seed, seconds: seconds, clock: clock)
    exploration.patience = options["--liveness"] != nil ? 1_000_000_000 : isLate ? Plans.late : nil
    let finding =
      if options["--liveness"] != nil {
        try exploration.storm(limit: limit)
      } else if options["--pairs"] != nil {
        try exploration.exhaust(limit: limit)
      } else { try exploration.search(limit: limit) }
    return try finding.map(exploration.shortened)
  }

  private func keep(_ finding: Finding) throws {
    let text = finding.schedule.text(violation: finding.violation)
    print(text.split(separator: "\n").prefix(20).joined(separator: "\n"))
    let path = (options["--keep"] ?? ".") + "/schedule-\(seed)-\(runner.count)"
    try FileDescriptor.open(path, [.writeOnly, .create, .truncate]).writeAll(Array(text.utf8))
    print("repeat it: Tests/Schedules/explore --replay \(path)\n")
  }

  private func rounded(_ number: Double) -> String {
    let tenths = Int((number * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }

  /// Searches for each fault, or each of a list, in its plans.
  private func find(_ list: String, of faults: [Plans.Fault]) throws -> Bool {
    var missed: [String] = []
    let names = list.split(separator: ",").map(String.init)
    var faults = faults.filter { names.isEmpty || names.contains($0.fault.rawValue) }
    faults = share(of: faults)
    print("schedules\tseconds\tprocessor\tfault\tmended in\tfound in, and how")
    for (fault, commit, plans) in faults {
      let (first, start, used) = (runner.count, spent, seam_used_nanoseconds())
      var finding: Finding?
      for text in plans where finding == nil {
        finding = try explore(
          .init(text, mutant: fault.rawValue), isLate: Plans.delays.contains(fault),
          seconds: (options["--seconds"].flatMap { Double($0) } ?? 120) / Double(plans.count))
      }
      // What is found without the fault says nothing about it.
      if let same = finding?.schedule {
        let correct = Schedule(plan: .init(same.plan.text), choices: same.choices)
        let oracle = Oracle(plan: correct.plan, outcome: try runner.run(correct, isVerbose: true))
        if let violation = oracle.violation()
          ?? (Plans.delays.contains(fault) ? oracle.lateness(Plans.late) : nil)
        {
          try keep(Finding(schedule: correct, violation: violation))
          finding = nil
        }
      }
      let processor = Double(seam_used_nanoseconds() - used) / 1e9
      let how = finding.map { finding in
        let choices = finding.schedule.choices.map { "\($0.step) \($0.action) \($0.process)" }
        return finding.schedule.plan.text + " [" + choices.joined(separator: ", ") + "]: "
          + finding.violation.split(separator: "\n")[0].prefix(100)
      }
      print(
        runner.count - first, rounded(spent - start), rounded(processor), fault.rawValue, commit,
        how ?? "NOT FOUND", separator: "\t")
      if finding == nil { missed.append(fault.rawValue) }
    }
    print("\(faults.count - missed.count) of \(faults.count) found; missed: \(missed)")
    return missed.isEmpty
  }

  private func replay(_ file: String) throws -> Bool {
    let bytes = try FileDescriptor.open(file, .readOnly).readToEnd(
      expectedBytes: 0, maximumBytes: 1 << 20)
    let schedule = try Schedule(text: String(decoding: bytes, as: UTF8.self))
    let times = options["--times"].flatMap { Int($0) } ?? 1
    var found: [String: Int] = [:]
    for time in 0..<times {
      let outcome = try runner.run(schedule, isVerbose: true)
      if time == 0 { print(columns(outcome)) }
      let oracle = Oracle(plan: schedule.plan, outcome: outcome)
      found[oracle.violation() ?? oracle.lateness() ?? "no violation", default: 0] += 1
    }
    for (violation, count) in found { print("\(count) of \(times): \(violation)") }
    return found["no violation"] == times
  }
}
