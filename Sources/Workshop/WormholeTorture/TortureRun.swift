import Wormhole
import WormholeEtcd
import WormholePeers
import WormholeSystem
import WormholeTerminals
import WormholeToolkit
import WormholeWorkshop

@main
struct Main {
  static func main() {
    prepareSignals()
    EtcdEngine.register()
    do {
      let arguments = try argumentTexts()
      if arguments.first == "worker" {
        guard let json = arguments.last, json.hasPrefix("{") else {
          throw Misuse("workers are started by the program itself")
        }
        try Worker(decoded(WorkerArguments.self, from: json)).run()
        Program.exit(0)
      }
      guard let options = try TortureOptions(arguments) else { return print(TortureOptions.help) }
      Program.exit(try TortureRun(options).run() ? 0 : 1)
    } catch {
      Terminal.say("torture: \(error)")
      Program.exit(error is Misuse ? 64 : 74)
    }
  }
}

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
    Terminal.print(
      "torture: seed \(options.seed), \(options.processes) processes, \(options.seconds) s, "
        + "\(engine ?? "leases") \(options.brokenRule.map { "without \($0)" } ?? "intact")")
    try directory.create()
    let report: Report
    do {
      report = try work()
    } catch {
      Terminal.print("kept: \(directory.path)")
      throw error
    }
    Terminal.print(report.text)
    guard report.failed == 0 else {
      Terminal.print(
        "torture: \(report.failed) of \(report.checks.count) checks failed; kept: "
          + "\(directory.path); again: --seed \(options.seed) \(options.text)")
      return false
    }
    try removeTree(directory.path)
    Terminal.print("torture: all \(report.checks.count) checks hold")
    return true
  }

  private func work() throws -> Report {
    try Pulse.begin()
    let nemesis = try options.members.map { _ in try Nemesis(options, self.directory) }
    var directory = self.directory
    directory.etcd = nemesis?.location(0)
    let container = try directory.open()
    let chaos = Chaos(container, nemesis, options: options, directory: directory)
    try chaos.run()
    let restless = try chaos.settle()
    var checks: [Check] = []
    if nemesis != nil, options.kinds.contains(.presence) {
      checks.append(try checkAbsence(of: chaos.workers.first, container))
    }
    if let nemesis { checks.append(try checkRestore(nemesis, container)) }
    let final = FinalWork(
      container: container, directory: directory, options: options, life: chaos.counts.started + 1)
    let values = try final.changeValues()
    let presence = PresenceWatch.sum(chaos.workers.map(\.processID))
    let missed = try chaos.finish(
      jsonText(values.merging([PresenceWatch.key: presence]) { $1 }))
    if options.kinds.contains(.requests) {
      // What others see of the workers that have ended, before this process takes their names.
      checks.append(try RequestChecks.deadPeers(container, options.processes))
    }
    try final.drain()
    let records = try Records(directory, lives: final.life)
    checks += HistoryChecks(records: records, last: values, isOnEtcd: nemesis != nil).all
    checks += JournalChecks(records: records, isOnEtcd: nemesis != nil).all
    checks += [
      Check(
        "observers receive the last value, the last post and the present processes",
        "\(options.processes) workers", evidence: missed),
      Check(
        "no worker ends or hangs by itself", "\(chaos.counts.started) workers",
        evidence: chaos.failures + restless),
    ]
    checks += try final.checks(records)
    checks.append(try Leftovers(directory: directory).check(container))
    return Report(
      records: records, counts: chaos.counts, etcd: nemesis?.counts, checks: checks)
  }
}

/// The main process's work, which completes all work. Its life continues the workers' numbering.
struct FinalWork {
  let container: SharedContainer
  let directory: RunDirectory
  let options: TortureOptions
  let life: Int

  /// Changes every value once more, which observers must see in the end; returns the last values.
  func changeValues() throws -> [String: HistoryValue] {
    let recorder = try Recorder(directory, life: life, .values, isAlone: true)
    let operations = Operations(container: container, recorder: recorder)
    let terms = Operations.Terms()
    let keys = Workload.values(processes: options.processes)
    for key in keys {
      let number = recorder.newNumber()
      try operations.update("last change", key: key, terms: terms) { old in
        Workload.isCounter(key) ? (old ?? 0) + 1 : number
      }
    }
    try operations.setState(recorder.newNumber(), terms)
    for name in Workload.notifications { try operations.post(name, terms.disturbance) }
    return try Dictionary(
      uniqueKeysWithValues: keys.map { key in
        guard let last = try operations.read(key) else {
          throw Failure(description: "\(key) has no value after its last change")
        }
        return (key, last)
      })
  }

  /// Completes all pending deliveries, after all workers have ended.
  func drain() throws {
    func drain(_ kind: Kind, _ make: () throws -> [any Deliveries]) throws {
      guard options.kinds.contains(kind) else { return }
      let recorder = try Recorder(directory, life: life, kind)
      for deliveries in try make() { try DeliveryClient(deliveries, recorder, slot: 0).drain() }
    }
    try drain(.queues) { [try QueueDeliveries(container, slot: 0)] }
    try drain(.logs) { [try LogDeliveries(container, slot: 0)] }
    try drain(.files) {
      let files = try (0..<options.processes).map { slot in
        let session = try PeerSession(RequestClient.name(slot: slot), in: container)
        return FileDeliveries(session, directory, processes: options.processes)
      }
      for files in files { try files.finishCopies() }
      return files
    }
  }

  /// Checks deliveries and requests.
  func checks(_ records: Records) throws -> [Check] {
    var checks: [Check] = []
    if options.kinds.contains(.requests) {
      let journals = records.journals.filter { $0.kind == .requests }
      checks += RequestChecks(journals: journals, isOnEtcd: options.members != nil).all
    }
    if options.kinds.contains(.queues) {
      let messages = DeliveryChecks("message", records.deliveries(.queues))
      checks += messages.all()
      checks.append(
        try messages.statuses { queue, slot, id in
          guard let id = QueueEntryID(id) else { return nil }
          return try QueueDeliveries.sender(container, queue, slot).status(of: id)
        })
    }
    if options.kinds.contains(.logs) {
      checks += DeliveryChecks("log message", records.deliveries(.logs)).all(isLog: true)
    }
    if options.kinds.contains(.files) {
      let files = DeliveryChecks("file", records.deliveries(.files))
      checks += files.all()
      checks.append(
        try files.givenBack {
          try ifPresent(FileDeliveries.isWhole($0, at: directory.file($0))) ?? false
        })
    }
    return checks
  }
}

/// The report of a run on standard output: always the same lines in the same order.
struct Report {
  let records: Records
  let counts: Chaos.Counts
  /// The counts of the container's etcd, if it is on one.
  let etcd: [Nemesis.Deed: Int]?
  let checks: [Check]

  var failed: Int { checks.count { !$0.holds } }

  var text: String { (operations + processes + members + promises).joined(separator: "\n") + "\n" }

  private var operations: [String] {
    let kinds = records.kinds
    let total = kinds.reduce(0) { $0 + $1.count }
    return ["operations"] + kinds.map { row($0.kind, $0.count) } + [row("all", total)]
  }

  private var processes: [String] {
    let (retried, lost) = (records.count(.retried), records.count(.lost))
    return [
      "processes", row("started", counts.started), row("stopped", counts.stopped),
      row("killed", counts.killed), row("empty names removed", counts.namesRemoved),
      row("times that messages went as files", counts.observations),
      row(etcd == nil ? "leases taken over" : "changes overtaken", retried + lost),
      row("  begun again", retried), row("  reported leaseLost", lost),
      row("deadlines passed", records.count(.timedOut)),
    ]
  }

  private var members: [String] {
    guard let etcd else { return [] }
    return ["etcd"] + Nemesis.Deed.allCases.map { row($0.rawValue, etcd[$0] ?? 0) } + [
      row("reported unreachable", records.count(.unreachable)),
      row("reported outcomeUnknown", records.count(.inDoubt)),
    ]
  }

  private var promises: [String] {
    ["checks"]
      + checks.flatMap { check in
        let line = "  \(check.holds ? "ok    " : "FAILED")  \(check.promise) (\(check.extent))"
        return [line] + check.evidence.map { "          \($0)" }
      }
  }

  private func row(_ name: String, _ count: Int) -> String {
    "  " + name + " \(count)".padded(to: 36 - name.count, atRight: true)
  }
}
