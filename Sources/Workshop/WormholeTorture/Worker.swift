import Dispatch
import Wormhole
import WormholeEtcd
import WormholeSystem
import WormholeTerminals
import WormholeToolkit
import WormholeWorkshop

/// A process that hammers the container until the end of the run or its own death.
///
/// It then prints `idle` and waits for a line with the last value of each key. When all its
/// observers have received these values, it answers `done`, otherwise `behind` with a line for each
/// observer that has not.
final class Worker {
  private let arguments: WorkerArguments
  private let operations: Operations
  private let task: TaskClient
  private let companions: Companions
  private let observers: Observers
  private let registrations: [(name: String, registration: NotificationRegistration)]
  private var random: SeededGenerator
  private var lastRead: [String: HistoryValue?] = [:]

  /// The time in which an observer must receive the last value, on a busy machine.
  private static let reach: Duration = .seconds(10)

  init(_ arguments: WorkerArguments) throws {
    self.arguments = arguments
    #if DEBUG
      arguments.options.brokenRule.flatMap { LeaseFault(rawValue: $0) }?.begin()
      arguments.options.brokenRule.flatMap { EtcdFault(rawValue: $0) }?.begin()
    #endif
    try Pulse.begin()
    let recorder = try Recorder(arguments.directory, life: arguments.life, .values)
    let container = try recorder.insisting(until: arguments.end) { try arguments.directory.open() }
    operations = Operations(container: container, recorder: recorder)
    observers = Observers(container, recorder)
    registrations = try recorder.insisting(until: arguments.end) {
      try Workload.notifications.map { ($0, try container.notification($0).register()) }
    }
    task = TaskClient(
      container: container,
      recorder: try Recorder(arguments.directory, life: arguments.life, .task),
      arguments: arguments)
    companions = try Companions(container, arguments)
    random = SeededGenerator(seed: mix(arguments.options.seed) ^ UInt64(arguments.life))
  }

  func run() throws {
    try companions.begin()
    if arguments.options.kinds.contains(.values) { try work() }
    try companions.waitForEnd()
    try finish()
  }

  private func work() throws {
    try beginObserving()
    task.begin()
    while bootTimeNanoseconds() < arguments.end {
      try operations.recorder.tolerating { if isRush { try rush() } else { try step() } }
      pauseThread(.microseconds(Int.random(in: 0..<2_000, using: &random)))
    }
    task.waitForEnd()
  }

  // Only a few keys each, so that deliveries do not take all the time.
  private func beginObserving() throws {
    let others = (0..<arguments.options.processes).map(Workload.single)
    let keys = [
      random.pick(Workload.counters), random.pick(Workload.registers), random.pick(others),
      Workload.large[0],
    ]
    let followed = random.pick(Workload.registers + Workload.counters)
    let name = random.pick(Workload.notifications)
    for key in keys {
      try operations.recorder.insisting(until: arguments.end) { try observers.observe(key) }
    }
    try operations.recorder.insisting(until: arguments.end) { try observers.follow(followed) }
    try operations.recorder.insisting(until: arguments.end) { try observers.listen(name) }
  }

  private func newNumber() -> UInt64 { operations.recorder.newNumber() }

  private func terms() -> Operations.Terms {
    var terms = Operations.Terms()
    terms.disturbance = .random(using: &random)
    if random.chance(3) { terms.durability = .durable }
    // Sometimes in the past: the operation then succeeds only if the lease is free.
    if random.chance(8) { terms.patience = random.milliseconds(-5...60) }
    if random.chance(3) {
      // Running, but still overdue.
      terms.term = .milliseconds(10)
      terms.disturbance.pause = random.milliseconds(5...40)
    }
    terms.repeatsAfterLoss = !random.chance(5)
    return terms
  }

  private func step() throws {
    let terms = terms()
    let register = random.pick(Workload.registers)
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<20: try read()
    case 20..<24: try operations.incrementTwins(terms)
    case 24..<28: try operations.readTwins(Int.random(in: 0..<2, using: &random))
    case 28..<54: try increment(random.pick(Workload.counters), terms)
    case 54..<60: try operations.replace(register, with: newNumber(), terms)
    case 60..<64: try operations.remove(register, terms)
    case 64..<71: try update("update", register, terms: terms)
    case 71..<79:
      let expected = lastRead[register] ?? nil
      try operations.compareAndSet(register, from: expected, to: newNumber(), terms)
    case 79..<82: try update("failed update", register, terms: terms, fails: true)
    case 82..<84: try operations.replace(Workload.large[0], with: newNumber(), terms)
    case 84..<85: try update("large update", Workload.large[0], terms: terms)
    case 85..<90:
      try operations.replace(Workload.single(arguments.slot), with: newNumber(), terms)
    case 90..<94: try operations.post(random.pick(Workload.notifications), terms.disturbance)
    case 94..<97:
      let (name, registration) = random.pick(registrations)
      try operations.check(name, registration)
    case 97..<98: try operations.setState(newNumber(), terms)
    default: try operations.state()
    }
  }

  private func read() throws {
    let key = random.pick(
      Workload.registers + Workload.registers + Workload.counters + Workload.large
        + (0..<arguments.options.processes).map(Workload.single))
    lastRead[key] = try operations.read(key)
  }

  private func increment(_ key: String, _ terms: Operations.Terms) throws {
    try operations.update("increment", key: key, terms: terms) { ($0 ?? 0) + 1 }
  }

  /// For a part of each second all workers want the same lease and hold it for a while. The lease
  /// of a stopped worker is taken over, and the worker is continued while a successor is in the
  /// middle of its change.
  private var isRush: Bool { bootTimeNanoseconds() % 1_000_000_000 < 400_000_000 }

  private func rush() throws {
    var terms = Operations.Terms()
    if random.chance(14) {
      // Without rule 2 its change collides with its successor's, if it does not pause.
      terms.disturbance.interruption = Interruption(point: .beforeDeclaring, isFatal: false)
    } else {
      terms.disturbance = .random(using: &random)
      terms.disturbance.pause = random.milliseconds(5...25)
      terms.disturbance.stopsInClosure = random.chance(8)
    }
    try increment(Workload.counters[0], terms)
  }

  private func update(
    _ kind: String, _ key: String, terms: Operations.Terms, fails: Bool = false
  ) throws {
    let new = newNumber()
    try operations.update(kind, key: key, terms: terms, fails: fails) { _ in new }
  }

  private func finish() throws {
    let heard = observers.heard()
    try Program.write("idle\n", to: 1)
    guard let line = readLine() else { return }
    let last = try decoded([String: HistoryValue].self, from: line)
    let listens = !heard.isEmpty
    var behind: [String] = []
    _ = poll(until: .now + Self.reach) {
      behind = observers.behind(last) + companions.behind(last)
      return behind.isEmpty && !(listens && observers.heard() == heard)
    }
    if listens, observers.heard() == heard {
      behind.append("its listener did not receive the last post")
    }
    let answer = behind.map { "behind \($0)" } + ["done"]
    try Program.write(answer.joined(separator: "\n") + "\n", to: 1)
  }
}

/// A worker's operations with `await`, beside its thread: increments, some of which are cancelled
/// while they wait.
struct TaskClient {
  let container: SharedContainer
  let recorder: Recorder
  let arguments: WorkerArguments
  private let hasEnded = DispatchSemaphore(value: 0)

  func begin() {
    Task {
      do {
        try await work()
      } catch {
        Terminal.say("torture: \(error)")
        Program.exit(74)
      }
      hasEnded.signal()
    }
  }

  /// Waits for the end; blocks the calling thread.
  func waitForEnd() { hasEnded.wait() }

  private func work() async throws {
    var random = SeededGenerator(seed: ~mix(arguments.options.seed) ^ UInt64(arguments.life))
    while bootTimeNanoseconds() < arguments.end {
      var terms = Operations.Terms()
      if random.chance(30) { terms.disturbance.pause = random.milliseconds(0...15) }
      if random.chance(10) { terms.patience = random.milliseconds(-5...60) }
      terms.disturbance.stopsInClosure = random.chance(3)
      let cancellation = random.chance(20) ? random.milliseconds(0...40) : nil
      try await increment(Workload.counters[2], terms, cancelledAfter: cancellation)
      try await Task.sleep(for: random.milliseconds(0...20))
    }
  }

  private func increment(
    _ key: String, _ terms: Operations.Terms, cancelledAfter cancellation: Duration?
  ) async throws {
    let attempts = Attempts(recorder, key, disturbance: terms.disturbance)
    let change = Task { [self] in
      try await recorder.perform(
        "awaited increment", key: key, call: Operations.tried, patience: terms.patience
      ) {
        try await container.value(key).update(until: terms.deadline) {
          try attempts.change(&$0) { ($0 ?? 0) + 1 }
        }
        return .done
      }
    }
    if let cancellation {
      try await Task.sleep(for: cancellation)
      change.cancel()
    }
    try await change.value
  }
}

/// The argument with which the main process starts a worker, as JSON: `torture worker {…}`.
struct WorkerArguments: Codable {
  let directory: RunDirectory
  /// Its place among the workers; the successor of a killed worker takes it over.
  let slot: Int
  /// The number of the worker in the run, from 1; successors have their own.
  let life: Int
  /// The end of its work, in nanoseconds since the machine started.
  let end: UInt64
  let options: TortureOptions
}
