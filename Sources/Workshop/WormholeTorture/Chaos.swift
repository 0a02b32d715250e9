import Wormhole
import WormholeInspection
import WormholeSystem
import WormholeTerminals
import WormholeToolkit
import WormholeWorkshop

/// The director of a run: keeps workers working, and stops, continues and kills them at random.
final class Chaos {
  struct Counts {
    var started = 0
    var killed = 0
    var stopped = 0
    var namesRemoved = 0
    var observations = 0
  }

  private let container: SharedContainer
  /// The director of the container's etcd, if it is on one.
  private let nemesis: Nemesis?
  private let directory: RunDirectory
  private let options: TortureOptions
  private let end: UInt64
  private var random: SeededGenerator
  private var nextAction = ContinuousClock.now
  /// While it lasts, messages between processes go as files.
  private var observation: MailboxObservation?
  private(set) var workers: [WorkerProcess] = []
  private(set) var counts = Counts()
  /// Workers that ended without being killed.
  private(set) var failures: [String] = []

  init(
    _ container: SharedContainer, _ nemesis: Nemesis?, options: TortureOptions,
    directory: RunDirectory
  ) {
    self.container = container
    self.nemesis = nemesis
    self.options = options
    self.directory = directory
    random = SeededGenerator(seed: options.seed)
    end = bootTimeNanoseconds() + UInt64(options.seconds * 1e9)
  }

  private func start(slot: Int) throws {
    counts.started += 1
    var directory = directory
    directory.etcd = nemesis?.location(counts.started)
    let arguments = WorkerArguments(
      directory: directory, slot: slot, life: counts.started, end: end, options: options)
    workers.append(try WorkerProcess(arguments))
  }

  func run() throws {
    for slot in 0..<options.processes { try start(slot: slot) }
    while bootTimeNanoseconds() < end {
      let now = ContinuousClock.now
      for worker in workers { try attend(worker, now: now) }
      try nemesis?.attend(now: now)
      if now >= nextAction {
        try act(now: now)
        // About an eighth of the workers is stopped at any time.
        nextAction = now + random.milliseconds(40...250) * 6 / options.processes
      }
      showProgress()
      pauseThread(.milliseconds(5))
    }
    Terminal.progress("")
    for worker in workers { try worker.process.send(.continue) }
    try nemesis?.heal()
  }

  /// A pause longer than a lease on etcd; none for most stops, and none in a directory.
  private func longPause() -> Duration? {
    nemesis != nil && random.chance(15) ? random.milliseconds(2_500...4_500) : nil
  }

  // Continues a stopped worker in time, even one that has stopped itself; replaces a dead one.
  private func attend(_ worker: WorkerProcess, now: ContinuousClock.Instant) throws {
    if let end = try worker.process.termination(until: .now) {
      workers.removeAll { $0 === worker }
      let isOver = bootTimeNanoseconds() >= self.end
      if end == .exited(0), isOver { return }
      if let fault = fault(of: worker, end) { failures.append(fault) }
      if !isOver { try start(slot: worker.slot) }
      return
    }
    guard let continuation = worker.continuation else {
      guard ProcessStatus.of(worker.processID)?.isStopped == true else { return }
      // In the middle of an operation: long enough for a takeover (a stopped process keeps its
      // lease for 50 ms), or just too short for one.
      let pause = longPause() ?? random.milliseconds(random.chance(25) ? 0...60 : 100...300)
      return noteStop(worker, "stopped itself", until: now + pause)
    }
    guard now >= continuation else { return }
    worker.continuation = nil
    try worker.process.send(.continue)
  }

  private func noteStop(
    _ worker: WorkerProcess, _ what: String, until moment: ContinuousClock.Instant
  ) {
    counts.stopped += 1
    worker.continuation = moment
    report(worker, what)
  }

  private func act(now: ContinuousClock.Instant) throws {
    // Names that are now empty are removed, even if a worker watches or is about to use them.
    if nemesis == nil, options.kinds.contains(.values), random.chance(25) {
      for key in Workload.values(processes: options.processes) {
        if try container.removeEmptyName(key, .value) { counts.namesRemoved += 1 }
      }
    }
    if nemesis == nil, options.kinds.contains(.requests), random.chance(50) {
      observation = observation == nil ? MailboxObservation(of: container.root) : nil
      if observation != nil { counts.observations += 1 }
    }
    guard let worker = workers.randomElement(using: &random) else { return }
    guard !random.chance(10) else {
      report(worker, "killed")
      worker.isKilled = true
      return try worker.process.send(.kill)
    }
    guard worker.continuation == nil else { return }
    try worker.process.send(.stop)
    noteStop(worker, "stopped", until: now + (longPause() ?? random.milliseconds(0...150)))
  }

  /// Counts the end of a worker; returns its fault, if it was not killed.
  private func fault(of worker: WorkerProcess, _ end: Termination?) -> String? {
    switch end {
    case .killed(signal: Signal.kill.rawValue):
      counts.killed += 1
      return nil
    case nil: return "worker \(worker.life) does not come to rest"
    case let end?: return "worker \(worker.life) ended by itself: \(end)"
    }
  }

  private func report(_ worker: WorkerProcess, _ what: String) {
    guard options.isVerbose else { return }
    Terminal.say("worker \(worker.life) (process \(worker.processID)) \(what)")
  }

  private func showProgress() {
    let now = bootTimeNanoseconds()
    let left = end > now ? (end - now) / 1_000_000_000 : 0
    Terminal.progress(
      "\(left) s left, \(counts.started) started, \(counts.stopped) stopped, "
        + "\(counts.killed) killed")
  }

  // MARK: The end

  /// Waits until all workers are at rest.
  ///
  /// - Returns: The faults of workers that are not at rest.
  func settle() throws -> [String] {
    let deadline = ContinuousClock.now + .seconds(60)
    var busy = workers
    _ = try poll(until: deadline) {
      // Each may have stopped itself in its last operation, and another may wait for it.
      for worker in busy where !worker.isKilled { try worker.process.send(.continue) }
      busy = busy.filter { worker in
        guard !worker.isKilled else { return false }
        worker.isIdle = worker.line(until: .now) == "idle"
        return !worker.isIdle && ProcessStatus.of(worker.processID)?.isDead == false
      }
      return busy.isEmpty
    }
    let restless = workers.filter { !$0.isIdle }
    workers.removeAll { !$0.isIdle }
    return try restless.compactMap { worker in
      fault(of: worker, try worker.process.termination(until: deadline))
    }
  }

  /// Sends the workers the last written values, and waits for their ends.
  ///
  /// - Returns: The values that their observers have missed.
  func finish(_ last: String) throws -> [String] {
    for worker in workers { try worker.process.tell(last) }
    let deadline = ContinuousClock.now + .seconds(30)
    var missed: [String] = []
    for worker in workers {
      var line = worker.line(until: deadline)
      while let fault = line, fault != "done" {
        missed.append("worker \(worker.life): \(fault)")
        line = worker.line(until: deadline)
      }
      if line == nil { missed.append("worker \(worker.life) does not answer") }
      if try worker.process.termination(until: deadline) != .exited(0) {
        missed.append("worker \(worker.life) ended with an error")
      }
    }
    workers.removeAll()
    return missed
  }
}

/// A worker as the main process sees it. It is killed when this value is released.
final class WorkerProcess {
  let slot: Int
  let life: Int
  /// When to continue it; nil while it is not known to be stopped.
  var continuation: ContinuousClock.Instant?
  /// Whether it was killed. It may have just come to rest, and ends a moment later.
  var isKilled = false
  /// Whether it is at rest, and waits for the last values.
  var isIdle = false
  let process: LineProcess

  init(_ arguments: WorkerArguments) throws {
    slot = arguments.slot
    life = arguments.life
    process = try LineProcess(
      // Every second one is the other version.
      arguments.life.isMultiple(of: 2)
        ? arguments.options.other ?? Program.executablePath() : Program.executablePath(),
      ["worker", jsonText(arguments)], readsErrors: false, endsWithThread: true)
  }

  var processID: Int32 { process.processID }

  func line(until deadline: ContinuousClock.Instant) -> String? {
    // It fails if there is none before the deadline, or the process has ended.
    try? process.line(until: deadline)
  }
}
