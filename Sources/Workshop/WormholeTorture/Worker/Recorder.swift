import Synchronization
import Wormhole
import WormholePeers
import WormholeSystem
import WormholeTerminals
import WormholeWorkshop

/// The deliberate failure of an update's closure. No process may ever read the value that it had
/// set.
struct Deliberate: Error {}

/// The recorder of a client of a worker. Each entry is one write, so that it survives a kill.
final class Recorder: Sendable {
  private let journal: SharedDescriptor
  let life: Int
  private let lastNumber: Atomic<UInt64>
  private let epochs = Atomic(0)
  let isOnEtcd: Bool
  /// Whether all workers rest or have ended, so that no error has an excuse.
  private let isAlone: Bool

  /// The time by which an operation may exceed its deadline, because the machine may be busy. Time
  /// when the process itself did not run is subtracted (`Pulse`).
  static let allowance: Duration = .seconds(5)

  /// How long a read or a post, which has no deadline, may take: in a directory it waits for
  /// nothing; on etcd it has 10 seconds.
  var patienceWithoutDeadline: Duration { isOnEtcd ? CallLimit.standardWait : .zero }

  init(
    _ directory: RunDirectory, life: Int, _ kind: Kind, isAlone: Bool = false
  ) throws(Errno) {
    self.life = life
    self.isAlone = isAlone
    isOnEtcd = directory.etcd != nil
    lastNumber = Atomic(Workload.firstNumber(life: life))
    let path = directory.journal(life: life, kind)
    journal = SharedDescriptor(
      try FileDescriptor.open(path, [.writeOnly, .create, .append, .noFollow]))
  }

  func note(_ entries: JournalEntry...) throws {
    for entry in entries { try journal.descriptor.writeAll(Array(entry.line.utf8)) }
  }

  /// Notes entries where no caller could handle an error: without its records this worker is useless.
  func noteOrEnd(_ entries: JournalEntry...) {
    do {
      for entry in entries { try note(entry) }
    } catch {
      Terminal.say("torture: cannot write the journal: \(error)")
      Program.exit(74)
    }
  }

  /// Returns the next of the numbers that only this client uses.
  func newNumber() -> UInt64 { lastNumber.wrappingAdd(1, ordering: .relaxed).newValue }

  /// Returns the name of a new epoch as a consumer.
  func newEpoch() -> String { "\(life)-\(epochs.wrappingAdd(1, ordering: .relaxed).newValue)" }

  /// Performs one operation, and records its call before and its answer after it.
  ///
  /// - Parameter patience: The time to wait for the lease.
  /// - Returns: nil if it failed without any effect.
  func perform(
    _ kind: String, key: String, call: HistoryOperation.Call, patience: Duration,
    _ body: () throws -> HistoryOperation.Answer
  ) throws -> HistoryOperation.Answer? {
    try begin(kind, key, call, patience)(Result(catching: body))
  }

  /// Performs one operation in a task.
  func perform(
    _ kind: String, key: String, call: HistoryOperation.Call, patience: Duration,
    _ body: () async throws -> HistoryOperation.Answer
  ) async throws {
    let end = try begin(kind, key, call, patience)
    let result: Result<HistoryOperation.Answer, any Error>
    do {
      result = .success(try await body())
    } catch {
      result = .failure(error)
    }
    _ = try end(result)
  }

  /// Notes the beginning of an operation; returns what notes its end, and returns its answer.
  private func begin(
    _ kind: String, _ key: String, _ call: HistoryOperation.Call, _ patience: Duration
  ) throws -> (Result<HistoryOperation.Answer, any Error>) throws -> HistoryOperation.Answer? {
    try note(.began(key: key, call, at: bootTimeNanoseconds()))
    let watch = Stopwatch()
    return { result in
      let end = bootTimeNanoseconds()
      try self.check(watch, patience: patience, "\(kind) of \(key)")
      switch result {
      case .success(let answer):
        try self.note(.answered(answer, at: end), .did(kind))
        return answer
      case .failure(let error):
        try self.fail(kind, key, error: error)
        return nil
      }
    }
  }

  private func fail(_ kind: String, _ key: String, error: any Error) throws {
    switch error {
    case is Deliberate, is CancellationError:
      try note(.withoutEffect, .did(error is Deliberate ? kind : "cancelled " + kind))
    case let error as WormholeError where error.code == .outcomeUnknown && !isAlone:
      try note(.unknown, .inDoubt)
    case is Content.Torn: try note(.unknown, .broke(.whole, "\(error)"))
    default:
      if error is WormholeError, let entry = passing(error) {
        // That nothing was done is a promise, too: the history shows a violation.
        try note(.withoutEffect, entry)
      } else {
        try note(.unknown, .broke(.noFault, "\(kind) of \(key): \(error)"))
      }
    }
  }
}

// Calls outside the history of operations.
extension Recorder {
  /// Returns the entry for an expected error; nil for a fault. A missing answer is a fault in a
  /// directory.
  func passing(_ error: any Error) -> JournalEntry? {
    guard !isAlone else { return nil }
    return switch (error as? WormholeError)?.code {
    case .leaseLost, .replaced, .notActive: .lost
    case .timedOut: .timedOut
    case .unreachable where isOnEtcd, .clusterUnreachable where isOnEtcd: .unreachable
    case .outcomeUnknown where isOnEtcd: .inDoubt
    default: nil
    }
  }

  /// Returns the entry for the error of code that no caller waits for.
  func entry(_ error: any Error, in what: String) -> JournalEntry {
    passing(error) ?? .broke(.noFault, "\(what): \(error)")
  }

  /// Makes a call whose failure is not a fault if etcd did not answer.
  func tolerating(_ body: () throws -> Void) throws {
    do {
      try body()
    } catch {
      guard isOnEtcd, let entry = passing(error) else { throw error }
      try note(entry)
    }
  }

  /// Repeats a call that failed without a fault: until etcd answers, or, beside many busy
  /// processes, until its turn has come. It ends with the run, and a little later.
  func insisting<Result>(until end: UInt64, _ body: () throws -> Result) throws -> Result {
    while true {
      do {
        return try body()
      } catch {
        guard let entry = passing(error), bootTimeNanoseconds() < end + 20_000_000_000
        else { throw error }
        try note(entry)
      }
    }
  }

  /// Notes a call that took too long.
  func check(_ watch: Stopwatch, patience: Duration, _ what: @autoclosure () -> String) throws {
    let took = watch.elapsed
    // After its deadline a call on etcd still has one second for a round trip, at most twice: for
    // what was known, and for what it then reads. The rest is for a busy machine.
    if took > max(patience, .zero) + (isOnEtcd ? .seconds(4) : Self.allowance) {
      try note(.broke(.inTime, "\(what()) took \(took), its deadline was \(patience) away"))
    }
  }

  /// Makes a call, and notes it if it takes too long, whatever its result.
  func timed<Result>(
    _ what: String, patience: Duration, _ body: () throws -> Result
  ) throws -> Result {
    let watch = Stopwatch()
    let result = Swift.Result(catching: body)
    try check(watch, patience: patience, what)
    return try result.get()
  }
}

/// A thread that ticks, by which a process knows afterwards how long none of its threads ran: it
/// was stopped, or the machine gave it no time. Calls are not blamed for that.
enum Pulse {
  private struct State {
    var last = bootTimeNanoseconds()
    var missed: UInt64 = 0
  }

  private static let state = Mutex(State())
  private static let interval: Duration = .milliseconds(10)
  /// A longer pause between two ticks is a pause of the whole process.
  private static let shortest: UInt64 = 100_000_000

  static func begin() throws(Errno) {
    state.withLock { $0.last = bootTimeNanoseconds() }
    try startThread(name: "pulse") {
      while true {
        pauseThread(interval)
        state.withLock { state in
          let now = bootTimeNanoseconds()
          state.missed += pause(state, now)
          state.last = now
        }
      }
    }
  }

  private static func pause(_ state: State, _ now: UInt64) -> UInt64 {
    let pause = now - state.last
    return pause > shortest ? pause : 0
  }

  /// How long the process did not run, until now; in nanoseconds. Another thread may continue
  /// earlier than the ticking one, so the current pause counts as well.
  static func missed(at now: UInt64) -> UInt64 {
    state.withLock { $0.missed + (now > $0.last ? pause($0, now) : 0) }
  }
}

/// Measures the duration of an operation while the process runs.
struct Stopwatch {
  private let beginning = bootTimeNanoseconds()
  private let missed: UInt64

  init() { missed = Pulse.missed(at: beginning) }

  var elapsed: Duration {
    let now = bootTimeNanoseconds()
    let pause = Pulse.missed(at: now) - missed
    return .nanoseconds(Int64(clamping: now - beginning) - Int64(clamping: pause))
  }
}
