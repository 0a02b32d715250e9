import Wormhole
import WormholeEtcd
import WormholeInspection
import WormholeSystem
import WormholeWorkshop

/// One run from its beginning to its verdict.
struct TortureRun {
  private let options: TortureOptions
  private let directory: RunDirectory

  init(_ options: TortureOptions) {
    self.options = options
    let parent = options.directory ?? Program.environment("TMPDIR") ?? "/tmp"
    directory = RunDirectory(path: "\(parent)/torture-\(Program.processID)-\(options.seed)")
  }

  /// - Returns: Whether every check holds.
  func run() throws -> Bool {
    let engine = options.members.map { "etcd with \($0) member\($0 == 1 ? "" : "s")" }
    Terminal.write(
      "torture: seed \(options.seed), \(options.processes) processes, \(options.seconds) s, "
        + "\(engine ?? "leases") \(options.brokenRule.map { "without \($0)" } ?? "intact")\n",
      to: 1)
    if engine != nil {
      Terminal.write("left out: logs, which need a directory\n", to: 1)
    }
    try directory.create()
    let report: Report
    do {
      report = try work()
    } catch {
      Terminal.write("kept: \(directory.path)\n", to: 1)
      throw error
    }
    Terminal.write(report.text, to: 1)
    guard report.failed == 0 else {
      Terminal.write(
        "torture: \(report.failed) of \(report.checks.count) checks failed; kept: "
          + "\(directory.path); again: --seed \(options.seed) \(options.text)\n", to: 1)
      return false
    }
    try directory.remove()
    Terminal.write("torture: all \(report.checks.count) checks hold\n", to: 1)
    return true
  }

  private func work() throws -> Report {
    let nemesis = try options.members.map { _ in try Nemesis(options, self.directory) }
    var directory = self.directory
    directory.etcd = nemesis?.location(0)
    let container = try directory.open()
    let chaos = Chaos(container, nemesis, options: options, directory: directory)
    try chaos.run()
    let restless = try chaos.settle()
    var checks: [Check] = []
    if nemesis != nil, options.kinds.contains(.presence) {
      checks.append(try AbsenceCheck.check(chaos.workers.first, container))
    }
    if let nemesis { checks.append(try RestoreCheck.check(nemesis, container)) }
    let final = try FinalChanges(container, options, life: chaos.counts.started + 1)
    var last = final.last
    last[PresenceWatch.key] = PresenceWatch.sum(chaos.workers.map(\.processID))
    let missed = try chaos.finish(jsonText(last))
    var records = try Records(directory, lives: chaos.counts.started)
    let peers = try PeerChecks(
      container, directory, options: options, records: &records, life: chaos.counts.started + 1)
    checks +=
      HistoryChecks(
        records: records, final: final.operations, last: final.last, isOnEtcd: nemesis != nil
      ).all
    checks += JournalChecks(records: records).all
    if nemesis != nil { checks += JournalChecks(records: records).onEtcd }
    checks.append(
      Check(
        promise: "observers receive the last value, the last post and the present processes",
        extent: "\(options.processes) workers", evidence: missed))
    checks.append(
      Check(
        promise: "no worker ends or hangs by itself", extent: "\(chaos.counts.started) workers",
        evidence: chaos.failures + restless))
    checks += peers.all
    if let place = directory.etcd {
      checks.append(
        try EtcdLeftovers(location: EtcdLocation(place)).check(after: container.sweep(), container))
    } else {
      checks.append(
        try Leftovers(path: directory.container).check(after: container.sweep(), container))
    }
    return Report(
      records: records, counts: chaos.counts, etcd: nemesis?.counts, checks: checks)
  }
}

/// One more change of every value after all workers have ended, which observers must see in the
/// end.
struct FinalChanges {
  private(set) var operations: [HistoryOperation] = []
  private(set) var last: [String: HistoryValue] = [:]

  init(_ container: SharedContainer, _ options: TortureOptions, life: Int) throws {
    var next = Workload.firstNumber(life: life)
    let process = Workload.process(life: life, .thread)
    for key in Workload.values(processes: options.processes) {
      next += 1
      let (number, isCounter) = (next, Workload.isCounter(key))
      let beginning = bootTimeNanoseconds()
      let (from, to) = try container.value(key).update { content in
        let from = try Content.number(content, in: key)
        let to = isCounter ? (from ?? 0) + 1 : number
        content = Content.make(to, for: key)
        return (from, to)
      }
      operations.append(
        HistoryOperation(
          process: process, key: key, call: .update(from: from, to: to), invocation: beginning,
          outcome: .completed(.done, at: bootTimeNanoseconds())))
      last[key] = to
    }
    try end(container, next + 1, process: process)
  }

  private mutating func end(_ container: SharedContainer, _ number: UInt64, process: Int) throws {
    let beginning = bootTimeNanoseconds()
    try container.notification(Workload.bells[0]).setState(number)
    operations.append(
      HistoryOperation(
        process: process, key: Workload.state, call: .write(number), invocation: beginning,
        outcome: .completed(.done, at: bootTimeNanoseconds())))
    for bell in Workload.bells { try container.notification(bell).post() }
  }
}
