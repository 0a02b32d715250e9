import AppGroup
import Histories
import Synchronization
import SystemCalls

/// An update's closure failed on purpose: what it had put there must never be read.
struct Deliberate: Error {}

/// Writes down what a worker does: its operations in a history, the rest in a journal.
final class Recorder: Sendable {
  private let history: RecordFile
  private let journal: RecordFile
  private let process: Int

  /// How much later than its deadline an operation may end: the machine may be busy, and the
  /// process is stopped again and again.
  static let allowance: Duration = .seconds(5)

  init(_ directory: RunDirectory, life: Int) throws(Errno) {
    process = Workload.process(life: life)
    history = try RecordFile(directory.history(life: life))
    journal = try RecordFile(directory.journal(life: life))
  }

  func note(_ entry: JournalEntry) throws(Errno) { try journal.append(entry.line) }

  /// One try of an update's closure.
  func attempt(from: Histories.Value?, to: Histories.Value?) throws(Errno) {
    try history.append(HistoryLine.attempt(from: from, to: to))
  }

  /// Performs one operation and records its call before and its answer after it.
  ///
  /// - Parameter patience: how long it may wait for the lease.
  /// - Returns: nil when it failed without any effect.
  func perform(
    _ kind: String, _ key: String, _ call: Operation.Call, patience: Duration,
    _ body: () throws -> Operation.Answer
  ) throws -> Operation.Answer? {
    let beginning = bootTimeNanoseconds()
    try history.append(
      HistoryLine.invocation(process: process, key: key, call: call, at: beginning))
    let answer = try ending(kind, key, body)
    let took = Duration.nanoseconds(Int64(bootTimeNanoseconds() - beginning))
    if took > max(patience, .zero) + Self.allowance {
      try note(.late("\(kind) of \(key) took \(took), its deadline was \(patience) away"))
    }
    return answer
  }

  private func ending(
    _ kind: String, _ key: String, _ body: () throws -> Operation.Answer
  ) throws -> Operation.Answer? {
    do {
      let answer = try body()
      try history.append(HistoryLine.completed(answer, at: bootTimeNanoseconds()))
      try note(.did(kind))
      return answer
    } catch is Deliberate {
      try history.append(HistoryLine.withoutEffect)
      try note(.did(kind))
    } catch let error as AppGroupError where error.code == .timedOut || error.code == .leaseLost {
      try history.append(HistoryLine.withoutEffect)
      try note(error.code == .timedOut ? .timedOut : .lost)
    } catch {
      try history.append(HistoryLine.unknown)
      if error is Content.Torn {
        try note(.torn("\(error)"))
      } else {
        try note(.failed("\(kind) of \(key): \(error)"))
      }
    }
    return nil
  }
}

/// Counts how often an update's closure runs: more than once means that the lease was taken away.
final class Attempts: Sendable {
  private let count = Mutex(0)

  /// - Returns: whether this is not the first.
  func begin() -> Bool {
    count.withLock { count in
      count += 1
      return count > 1
    }
  }
}
