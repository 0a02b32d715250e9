import AppGroup
import Histories
import PropertyLists
import Synchronization
import SystemCalls

/// The deliberate failure of an update's closure. No process may ever read the value that it had
/// set.
struct Deliberate: Error {}

/// The recorder of a strand of a worker.
final class Recorder: Sendable {
  private let journal: RecordFile
  private let life: Int
  private let numbers: Mutex<(last: UInt64, tenures: Int)>

  /// The time by which an operation may exceed its deadline, because the machine may be busy and
  /// the process is stopped again and again.
  static let allowance: Duration = .seconds(5)

  init(_ directory: RunDirectory, life: Int, _ strand: Strand) throws(Errno) {
    self.life = life
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
    _ kind: String, _ key: String, _ call: Operation.Call, patience: Duration,
    _ body: () throws -> Operation.Answer
  ) throws -> Operation.Answer? {
    let beginning = try begin(key, call)
    return try end(kind, key, beginning, patience, Result(catching: body))
  }

  /// Performs one operation in a task.
  func perform(
    _ kind: String, _ key: String, _ call: Operation.Call, patience: Duration,
    _ body: () async throws -> Operation.Answer
  ) async throws {
    let beginning = try begin(key, call)
    let result: Result<Operation.Answer, any Error>
    do {
      result = .success(try await body())
    } catch {
      result = .failure(error)
    }
    _ = try end(kind, key, beginning, patience, result)
  }

  private func begin(_ key: String, _ call: Operation.Call) throws -> UInt64 {
    let beginning = bootTimeNanoseconds()
    try note(.began(key: key, call, at: beginning))
    return beginning
  }

  private func end(
    _ kind: String, _ key: String, _ beginning: UInt64, _ patience: Duration,
    _ result: Result<Operation.Answer, any Error>
  ) throws -> Operation.Answer? {
    let end = bootTimeNanoseconds()
    let took = Duration.nanoseconds(Int64(end - beginning))
    if took > max(patience, .zero) + Self.allowance {
      try note(.late("\(kind) of \(key) took \(took), its deadline was \(patience) away"))
    }
    switch result {
    case .success(let answer):
      try note(.answered(answer, at: end))
      try note(.did(kind))
      return answer
    case .failure(let error):
      try fail(kind, key, error)
      return nil
    }
  }

  private func fail(_ kind: String, _ key: String, _ error: any Error) throws {
    switch error {
    case is Deliberate, is CancellationError:
      try note(.withoutEffect)
      try note(.did(error is Deliberate ? kind : "cancelled " + kind))
    case let error as AppGroupError where error.code == .timedOut || error.code == .leaseLost:
      try note(.withoutEffect)
      try note(error.code == .timedOut ? .timedOut : .lost)
    case is Content.Torn:
      try note(.unknown)
      try note(.torn("\(error)"))
    default:
      try note(.unknown)
      try note(.failed("\(kind) of \(key): \(error)"))
    }
  }
}

/// The runs of an update's closure; more than one means that the lease was taken over.
final class Attempts: Sendable {
  private let recorder: Recorder
  private let key: String
  private let disturbance: Disturbance
  private let count = Mutex(0)

  init(_ recorder: Recorder, _ key: String, _ disturbance: Disturbance) {
    self.recorder = recorder
    self.key = key
    self.disturbance = disturbance
  }

  /// Begins a run; returns the value that it found.
  func begin(_ content: PropertyListValue?) throws -> Histories.Value? {
    let isFirst = count.withLock { count in
      count += 1
      return count == 1
    }
    if !isFirst { try recorder.note(.retried) }
    return try Content.number(content, in: key)
  }

  /// Makes a whole run: changes the content, and records the try.
  func change(
    _ content: inout PropertyListValue?, _ change: (Histories.Value?) -> Histories.Value
  ) throws {
    let old = try begin(content)
    let new = change(old)
    content = Content.make(new, for: key)
    try recorder.note(.tried(from: old, to: new))
    try disturbance.act()
  }
}
