import Synchronization
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

/// The deliberate failure of an update's closure. No process may ever read the value that it had
/// set.
struct Deliberate: Error {}

/// The recorder of a strand of a worker.
final class Recorder: Sendable {
  private let journal: RecordFile
  private let life: Int
  private let numbers: Mutex<(last: UInt64, tenures: Int)>
  private let isOnEtcd: Bool

  /// The bounds of the container's engine.
  var bounds: Bounds { isOnEtcd ? .etcd : .directory }

  /// The time by which an operation may exceed its deadline, because the machine may be busy.
  static let allowance: Duration = .seconds(5)

  /// How long calls may take. Time when the process itself did not run is subtracted (`Pulse`).
  struct Bounds {
    /// A call without a deadline.
    let read: Duration
    /// Any call, beyond its deadline.
    let allowance: Duration

    /// A read waits for nothing in a directory.
    static let directory = Bounds(read: .zero, allowance: Recorder.allowance)
    /// Without a deadline a call on etcd has 10 seconds. After its deadline it still has one second
    /// for a round trip, at most twice: for what was known, and for what it then reads. The rest is
    /// for a busy machine.
    static let etcd = Bounds(read: CallLimit.standardWait, allowance: .seconds(4))
  }

  init(_ directory: RunDirectory, life: Int, _ strand: Strand) throws(Errno) {
    self.life = life
    isOnEtcd = directory.etcd != nil
    numbers = Mutex((Workload.firstNumber(life: life), 0))
    journal = try RecordFile(directory.journal(life: life, strand))
  }

  func note(_ entry: JournalEntry) throws { try journal.append(entry.line) }

  /// Notes an entry where no caller could handle an error: without its records this worker is useless.
  func noteOrEnd(_ entries: JournalEntry...) {
    do {
      for entry in entries { try note(entry) }
    } catch {
      Terminal.say("torture: cannot write the journal: \(error)")
      Program.exit(74)
    }
  }

  /// Returns the next of the numbers that only this strand uses.
  func newNumber() -> UInt64 {
    numbers.withLock { numbers in
      numbers.last += 1
      return numbers.last
    }
  }

  /// Returns the name of a new tenure as a consumer.
  func newTenure() -> String {
    let count = numbers.withLock { numbers in
      numbers.tenures += 1
      return numbers.tenures
    }
    return "\(life)-\(count)"
  }

  /// Performs one operation, and records its call before and its answer after it.
  ///
  /// - Parameter patience: The time to wait for the lease.
  /// - Returns: nil if it failed without any effect.
  func perform(
    _ kind: String, key: String, call: HistoryOperation.Call, patience: Duration,
    _ body: () throws -> HistoryOperation.Answer
  ) throws -> HistoryOperation.Answer? {
    let (beginning, watch) = (try begin(key, call), Stopwatch())
    return try end(
      kind, key, beginning: beginning, watch: watch, patience: patience,
      result: Result(catching: body))
  }

  /// Performs one operation in a task.
  func perform(
    _ kind: String, key: String, call: HistoryOperation.Call, patience: Duration,
    _ body: () async throws -> HistoryOperation.Answer
  ) async throws {
    let (beginning, watch) = (try begin(key, call), Stopwatch())
    let result: Result<HistoryOperation.Answer, any Error>
    do {
      result = .success(try await body())
    } catch {
      result = .failure(error)
    }
    _ = try end(kind, key, beginning: beginning, watch: watch, patience: patience, result: result)
  }

  private func begin(_ key: String, _ call: HistoryOperation.Call) throws -> UInt64 {
    let beginning = bootTimeNanoseconds()
    try note(.began(key: key, call, at: beginning))
    return beginning
  }

  private func end(
    _ kind: String, _ key: String, beginning: UInt64, watch: Stopwatch, patience: Duration,
    result: Result<HistoryOperation.Answer, any Error>
  ) throws -> HistoryOperation.Answer? {
    let end = bootTimeNanoseconds()
    try check(watch, patience: patience, "\(kind) of \(key)")
    switch result {
    case .success(let answer):
      try note(.answered(answer, at: end))
      try note(.did(kind))
      return answer
    case .failure(let error):
      try fail(kind, key, error: error)
      return nil
    }
  }

  private func fail(_ kind: String, _ key: String, error: any Error) throws {
    switch error {
    case is Deliberate, is CancellationError:
      try note(.withoutEffect)
      try note(.did(error is Deliberate ? kind : "cancelled " + kind))
    case let error as AppGroupError where error.code == .outcomeUnknown:
      try note(.unknown)
      try note(.inDoubt)
    case let error as AppGroupError where passing(error) != nil:
      // That nothing was done is a promise, too: the history shows a violation.
      try note(.withoutEffect)
      if let entry = passing(error) { try note(entry) }
    case is Content.Torn:
      try note(.unknown)
      try note(.torn("\(error)"))
    default:
      try note(.unknown)
      try note(.failed("\(kind) of \(key): \(error)"))
    }
  }
}

// Calls outside the history of operations.
extension Recorder {
  /// Returns the entry for an expected error; nil for a fault. A missing answer is a fault in a
  /// directory.
  func passing(_ error: any Error) -> JournalEntry? {
    switch error {
    case let error as AppGroupError:
      switch error.code {
      case .leaseLost: .lost
      case .timedOut: .timedOut
      case .unreachable where isOnEtcd: .unreachable
      case .outcomeUnknown where isOnEtcd: .inDoubt
      default: nil
      }
    case let error as PeerError:
      switch error.code {
      case .replaced, .notActive: .lost
      case .timedOut: .timedOut
      case .unreachable where isOnEtcd: .unreachable
      default: nil
      }
    default: nil
    }
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
    if took > max(patience, .zero) + bounds.allowance {
      try note(.late("\(what()) took \(took), its deadline was \(patience) away"))
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

/// The runs of an update's closure; more than one means that the lease was taken over.
final class Attempts: Sendable {
  private let recorder: Recorder
  private let key: String
  private let disturbance: Disturbance
  private let count = Mutex(0)

  init(_ recorder: Recorder, _ key: String, disturbance: Disturbance) {
    self.recorder = recorder
    self.key = key
    self.disturbance = disturbance
  }

  /// Begins a run; returns the value that it found.
  func begin(_ content: PropertyListValue?) throws -> HistoryValue? {
    let isFirst = count.withLock { count in
      count += 1
      return count == 1
    }
    if !isFirst { try recorder.note(.retried) }
    return try Content.number(content, in: key)
  }

  /// Makes a whole run: changes the content, and records the try.
  func change(
    _ content: inout PropertyListValue?, _ change: (HistoryValue?) -> HistoryValue
  ) throws {
    let old = try begin(content)
    let new = change(old)
    content = Content.make(new, for: key)
    try recorder.note(.tried(from: old, to: new))
    try disturbance.act()
  }
}
